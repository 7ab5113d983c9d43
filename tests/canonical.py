"""Canonical rows: equal tables give equal JSON, whatever read them.

A row is an object in schema order. Numbers stand as they are, with "nan", "inf" and "-inf" as text;
decimals are text with exactly the scale's digits; dates and timestamps are ISO text, the latter in
microseconds and with a final Z if they know their zone; binary is "base64:..."; a map is an object
with its keys as sorted text. Rows are ordered by record key, partition path and then content.
"""

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pyarrow as pa

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Row = dict[str, Json]

SHOWN_DIFFERENCES_MAX = 5


def canonical_rows(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table in canonical form and order."""
    columns = [
        [canonical_value(value, field.type) for value in column.to_pylist()]
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    rows = zip(*columns, strict=True) if columns else ()
    return ordered([dict(zip(table.column_names, row, strict=True)) for row in rows])


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Rows by record key, partition path and content."""
    return sorted(
        rows,
        key=lambda row: (
            str(row.get("_hoodie_record_key")),
            str(row.get("_hoodie_partition_path")),
            as_text(row),
        ),
    )


def as_text(value: Json) -> str:
    """JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def difference(expected: Sequence[Row], found: Sequence[Row]) -> str:
    """What distinguishes two reads as multisets of rows; empty if nothing does."""
    wanted, given = Counter(map(as_text, expected)), Counter(map(as_text, found))
    missing, extra = sorted((wanted - given).elements()), sorted((given - wanted).elements())
    if not missing and not extra:
        return ""
    lines = [f"{len(expected)} rows expected, {len(found)} found"]
    for title, rows in (("missing", missing), ("not expected", extra)):
        lines += [f"{title}: {row}" for row in rows[:SHOWN_DIFFERENCES_MAX]]
        if len(rows) > SHOWN_DIFFERENCES_MAX:
            lines.append(f"{title}: {len(rows) - SHOWN_DIFFERENCES_MAX} more")
    return "\n".join(lines)


def canonical_value(value: object, kind: pa.DataType) -> Json:
    """One Python value of a given Arrow type, as `to_pylist` gives it, as canonical JSON."""
    if value is None:
        return None
    for holds, convert in CONVERSIONS:
        if holds(kind):
            return convert(value, kind)
    raise TypeError(f"no canonical form of the Arrow type {kind}")


def _plain(value: Json, _: pa.DataType) -> Json:
    return value


def _number(value: float, _: pa.DataType) -> Json:
    return value if math.isfinite(value) else str(value)


def _timestamp(value: datetime, kind: pa.DataType) -> Json:
    if kind.tz is None:
        return value.isoformat(timespec="microseconds")
    at = value.astimezone(UTC).replace(tzinfo=None)
    return at.isoformat(timespec="microseconds") + "Z"


def _struct(value: dict[str, object], kind: pa.DataType) -> Json:
    return {field.name: canonical_value(value[field.name], field.type) for field in kind}


def _list(value: list[object], kind: pa.DataType) -> Json:
    return [canonical_value(item, kind.value_type) for item in value]


def _map(value: list[tuple[object, object]], kind: pa.DataType) -> Json:
    pairs = (
        (str(canonical_value(key, kind.key_type)), canonical_value(item, kind.item_type))
        for key, item in value
    )
    return dict(sorted(pairs))


def _any_of(*tests: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(test(kind) for test in tests)


CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[..., Json]], ...] = (
    (pa.types.is_dictionary, lambda value, kind: canonical_value(value, kind.value_type)),
    (_any_of(pa.types.is_boolean, pa.types.is_integer), _plain),
    (_any_of(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view), _plain),
    (pa.types.is_floating, _number),
    (pa.types.is_decimal, lambda value, _: format(value, "f")),
    (pa.types.is_date, lambda value, _: value.isoformat()),
    (pa.types.is_timestamp, _timestamp),
    (
        _any_of(
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        ),
        lambda value, _: "base64:" + base64.b64encode(value).decode(),
    ),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
    (_any_of(pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list), _list),
)
