"""A statistic: the range of one column in a file or a partition, as metadata records hold it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.entries.value_types import (
    NOTHING_SEEN,
    Bound,
    ValueType,
    common_type,
    converted,
    early_value_type,
    order_of,
    plain_bound,
    value_type,
)


@dataclass(frozen=True, slots=True)
class Statistic:
    """What is known of one column in one file, or in all files of a partition.

    Bounds are plain, and None where every value is null.
    """

    kind: ValueType
    low: Bound | None
    high: Bound | None
    value_count: int
    null_count: int
    packed_bytes: int = 0
    unpacked_bytes: int = 0


def statistic_of(summary: ColumnSummary) -> Statistic | None:
    """A summary as a statistic; None for a column of a type that has none."""
    counts = (
        summary.value_count,
        summary.null_count,
        summary.packed_bytes,
        summary.unpacked_bytes,
    )
    if summary.minimum is None or summary.maximum is None:
        return Statistic(NOTHING_SEEN, None, None, *counts)
    kind = value_type(summary.minimum.type)
    if kind is None:
        return None
    return Statistic(kind, plain_bound(summary.minimum), plain_bound(summary.maximum), *counts)


def statistic_in(entry: Mapping[str, object]) -> Statistic | None:
    """The statistic in a metadata record; None where its bounds are not known.

    That is so where there are values besides nulls, but no bounds.
    """
    low, high = entry["minValue"], entry["maxValue"]
    kind = _described(entry.get("valueType"), low)
    value_count, null_count = _count(entry["valueCount"]), _count(entry["nullCount"])
    if kind is None or ((low is None or high is None) and null_count != value_count):
        return None
    sizes = _count(entry["totalSize"]), _count(entry["totalUncompressedSize"])
    return Statistic(kind, _bound(low, kind), _bound(high, kind), value_count, null_count, *sizes)


def union(statistics: Sequence[Statistic]) -> Statistic | None:
    """The statistic of all together; None when bounds of unlike types cannot be compared."""
    whole, *others = statistics
    for other in others:
        joined = _union(whole, other)
        if joined is None:
            return None
        whole = joined
    return whole


def _union(one: Statistic, other: Statistic) -> Statistic | None:
    kind = _kind(one, other)
    if kind is None:
        return None
    bounds = [
        (converted(each.low, each.kind, kind), converted(each.high, each.kind, kind))
        for each in (one, other)
        if each.low is not None and each.high is not None
    ]
    return Statistic(
        kind,
        min((low for low, _ in bounds), key=order_of, default=None),
        max((high for _, high in bounds), key=order_of, default=None),
        one.value_count + other.value_count,
        one.null_count + other.null_count,
        one.packed_bytes + other.packed_bytes,
        one.unpacked_bytes + other.unpacked_bytes,
    )


def _kind(one: Statistic, other: Statistic) -> ValueType | None:
    """The type of both; that of a statistic without bounds does not matter."""
    if other.low is None:
        return one.kind if one.kind != NOTHING_SEEN else other.kind
    return other.kind if one.low is None else common_type(one.kind, other.kind)


def _described(value_type: object, bound: object) -> ValueType | None:
    if isinstance(value_type, Mapping):
        detail = value_type["additionalInfo"]
        return ValueType(int(value_type["typeOrdinal"]), None if detail is None else str(detail))
    return early_value_type(_wrapper_and_value(bound)[0])


def _bound(wrapped: object, kind: ValueType) -> Bound | None:
    _, value = _wrapper_and_value(wrapped)
    return kind.plain(value) if isinstance(value, bool | int | float | str | bytes) else None


def _wrapper_and_value(wrapped: object) -> tuple[str | None, object]:
    """The branch of the union that is filled, and its value."""
    if isinstance(wrapped, Mapping):
        for name, branch in wrapped.items():
            if isinstance(branch, Mapping):
                return str(name), branch.get("value")
    return None, None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
