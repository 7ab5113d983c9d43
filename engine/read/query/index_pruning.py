"""Index pruning: the file groups of a read that the metadata table's indexes leave over.

An index by key answers for the newest snapshot alone: its entries are of the rows as they are now.
Bloom filters are of base files, which never change, so that they serve every read; a slice with
logs has rows that no filter knows. Each index says how many file groups it skipped, or why it was
not asked. Where it cannot be sure, it leaves all of them in.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.bloom_filters import file_filters
from lakewarden.engine.metadata.reading.column_stats import partition_ranges
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.record_index import locate
from lakewarden.engine.metadata.reading.secondary_index import (
    SecondaryEntry,
    locate_beginnings,
    locate_values,
)
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.read.conditions.needs import Need, Needs, Term
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.read.query.answer import IndexUse, Scan
from lakewarden.engine.read.query.index_trust import IndexTrust
from lakewarden.engine.read.query.prune import SkippedPart, prune_by_partition_ranges
from lakewarden.engine.snapshot import Snapshot

# An index of more keys than this would cost more than the files that it may save.
KEYS_MAX = 10_000
# The record index is asked for so many keys whatever the number of file groups, and for so many for
# each of them: of more keys, each file group is likely to have some.
_KEYS_ASKED, _KEYS_PER_SLICE = 64, 4
# For which types it is certain how Java spells a value.
_SPELLED = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
_EQUAL = frozenset({"=", "=="})


class NotUsable(Exception):
    """Why an index was not asked."""


@dataclass(frozen=True, slots=True)
class ReadOf:
    """What of a read decides which indexes may serve it."""

    state: Snapshot
    predicate: Predicate | None
    schema: pa.Schema
    trust: IndexTrust
    # What rows have to fulfil, as alternatives.
    needs: Needs = ((),)
    # Why indexes by key are not asked; None for the newest snapshot.
    past: str | None = None


def prune_by_partitions(
    read: ReadOf | None, partitions: tuple[str, ...] | None, skipped: tuple[SkippedPart, ...]
) -> tuple[tuple[str, ...] | None, tuple[SkippedPart, ...], tuple[IndexUse, ...]]:
    """The partitions that their statistics leave over, before any file of theirs is looked up."""
    if (
        read is None
        or read.predicate is None
        or not read.state.config.has_metadata(PARTITION_STATS)
    ):
        return partitions, skipped, ()
    fields = {field.name for field in read.state.config.partitions.fields}
    columns = [name for name in read.predicate.columns if name not in fields]
    if not columns or not fields:
        return partitions, skipped, ()
    doubt = read.past or read.trust.doubt_of_partitions()
    if doubt is not None:
        return partitions, skipped, (IndexUse(PARTITION_STATS, 0, doubt),)
    if partitions is None:
        partitions = read.state.source(use_metadata=True).partitions()
    statistics = read.state.metadata.partition(PARTITION_STATS)
    ranges = partition_ranges(statistics, columns, partitions)
    kept, excluded = prune_by_partition_ranges(partitions, ranges, read.schema, read.predicate)
    use = IndexUse(PARTITION_STATS, len(excluded), what="partitions")
    return kept, skipped + excluded, (use,)


def prune_by_keys(read: ReadOf, scan: Scan) -> Scan:
    """The scan without the file groups that hold none of the keys, or values, it asks for."""
    scan = _by_record_index(read, scan)
    for definition in read.state.definitions:
        if definition.partition.startswith(SECONDARY_INDEX_PREFIX):
            scan = _by_secondary(read, scan, definition)
    return scan


def prune_by_filters(read: ReadOf, scan: Scan) -> Scan:
    """The scan without the base files whose bloom filters rule all of its keys out."""
    has_asked_keys = any(one.index == RECORD_INDEX and not one.reason for one in scan.indexes)
    if has_asked_keys or not read.state.config.has_metadata(BLOOM_FILTERS):
        return scan
    if scan.spec.keys is None:
        return scan
    ruled_out = ruled_out_files(read.state, scan.slices, scan.spec.keys, BLOOM_FILTERS)
    return skipping(scan, BLOOM_FILTERS, lambda one: one.key not in ruled_out)


def skipping(
    scan: Scan, index: str, may_hold: Callable[[FileSlice], bool], *, what: str = "wanted rows"
) -> Scan:
    """The scan with the slices that an index leaves over, and what it says of the others."""
    kept = tuple(slice_ for slice_ in scan.slices if may_hold(slice_))
    reason = f"the index {index} has none of the {what} here"
    excluded = tuple(
        SkippedPart(one.partition, one.file_id, reason) for one in scan.slices if one not in kept
    )
    use = IndexUse(index, len(excluded))
    return replace(scan, slices=kept, skipped=scan.skipped + excluded, indexes=(*scan.indexes, use))


def not_asked(scan: Scan, index: str, reason: str) -> Scan:
    """The scan as it is, and why an index has no part in it."""
    return replace(scan, indexes=(*scan.indexes, IndexUse(index, 0, reason)))


def _by_record_index(read: ReadOf, scan: Scan) -> Scan:
    if not read.state.config.has_metadata(RECORD_INDEX) or not scan.slices:
        return scan
    keys = scan.spec.keys
    if keys is None:
        return scan
    try:
        _check_asked(read, RECORD_INDEX)
        if len(keys) > max(_KEYS_ASKED, len(scan.slices) * _KEYS_PER_SLICE):
            raise NotUsable(f"{len(keys)} keys are in nearly all of {len(scan.slices)} file groups")
    except NotUsable as reason:
        return not_asked(scan, RECORD_INDEX, str(reason))
    homes = _homes(read, scan, keys.to_pylist())
    return skipping(scan, RECORD_INDEX, lambda one: one.key in homes, what="keys")


def _by_secondary(read: ReadOf, scan: Scan, definition: IndexDefinition) -> Scan:
    if not scan.slices or len(definition.columns) != 1:
        return scan
    (column,) = definition.columns
    if not any(subject == column for group in read.needs for subject, _, _ in group):
        return scan
    try:
        _check_asked(read, definition.partition)
        entries = _entries(read, scan, definition, column)
        keys = {one.record_key for one in entries}
        if len(keys) > KEYS_MAX:
            raise NotUsable(f"{len(keys)} rows have the value, too many to look up")
    except NotUsable as reason:
        return not_asked(scan, definition.name, str(reason))
    homes = _homes(read, scan, keys)
    return skipping(scan, definition.name, lambda one: one.key in homes)


def _entries(
    read: ReadOf, scan: Scan, definition: IndexDefinition, column: str
) -> tuple[SecondaryEntry, ...]:
    """What an index has of the rows that a filter can mean."""
    index = read.state.metadata.partition(definition.partition)
    beginnings = _beginnings(read.needs, column)
    if beginnings is None:
        values = _secondary_values(read, column)
        return locate_values(index, definition, sorted(values, key=str))
    if len(scan.slices) <= len(index.file_group_ids):
        raise NotUsable("looking through it would cost more than it could save")
    return locate_beginnings(index, definition, beginnings)


def _beginnings(needs: Needs, column: str) -> list[str] | None:
    """The texts that a column begins with one of, where the filter says no more of it."""
    found: list[str] = []
    for group in needs:
        own = [
            str(value)
            for one, operator, value in group
            if (one, operator) == (column, "starts with")
        ]
        if not own or _of_group(group, column, with_null=True) is not None:
            return None
        found.append(max(own, key=len))
    return found


def _check_asked(read: ReadOf, partition: str) -> None:
    """Refuse what an index by key cannot be asked, or not be believed."""
    doubt = read.past or read.trust.doubt(partition)
    if doubt is not None:
        raise NotUsable(doubt)
    if read.state.history.versions:
        raise NotUsable("columns were renamed since it was built")


def _homes(read: ReadOf, scan: Scan, keys: Iterable[str]) -> frozenset[FileGroupId]:
    partitions = {slice_.partition for slice_ in scan.slices}
    located = locate(read.state.metadata.record_index(partitions), sorted(keys))
    return frozenset(one.file_group_id for one in located)


def _secondary_values(read: ReadOf, column: str) -> frozenset[str | None]:
    """The texts of the values that a column must have one of."""
    type_ = read.schema.field(column).type
    if not any(is_(type_) for is_ in _SPELLED):
        raise NotUsable(f"it is not certain how values of type {type_} are spelled in it")
    values = wanted_values(read.needs, column, with_null=True)
    if values is None:
        raise NotUsable(f"the filter does not say which values {column} has to have")
    texts: set[str | None] = set()
    for value in values:
        texts.add(None if value is None else _spelled(value, type_))
    return frozenset(texts)


def _spelled(value: object, type_: pa.DataType) -> str:
    """A value as Java spells it; dates are days since the epoch."""
    scalar = exact_scalar(value, type_)
    if scalar is None:
        raise NotUsable(f"{value!r} is no value of type {type_}")
    if pa.types.is_date32(type_):
        scalar = scalar.cast(pa.int32())
    return str(scalar.cast(pa.string()).as_py())


def exact_scalar(value: object, type_: pa.DataType) -> pa.Scalar | None:
    """A filter's value in a column's type; None where it is not the very same value there."""
    try:
        given = pa.scalar(value)
        cast = given.cast(type_)
        return cast if cast.cast(given.type).equals(given) else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, OverflowError):
        return None


def wanted_values(
    needs: Needs, subject: str | Term, *, with_null: bool = False
) -> tuple[object, ...] | None:
    """The values of which a column, or a function of it, must have one; None where any will do."""
    found: list[object] = []
    for group in needs:
        values = _of_group(group, subject, with_null=with_null)
        if values is None:
            return None
        found += values
    return tuple(found)


def _of_group(
    group: Sequence[Need], subject: str | Term, *, with_null: bool
) -> list[object] | None:
    """The values that the narrowest condition on a column names."""
    narrowest: list[object] | None = None
    for one, operator, value in group:
        if one != subject:
            continue
        if operator in _EQUAL and value is not None:
            listed = [value]
        elif operator == "in" and isinstance(value, list | tuple | set | frozenset):
            # In a list a null means rows without a value to Arrow, and nothing to SQL.
            listed = list(value)
        elif operator == "is null" and with_null:
            listed = [None]
        else:
            continue
        if None in listed and not with_null:
            continue
        if narrowest is None or len(listed) < len(narrowest):
            narrowest = listed
    return narrowest


def ruled_out_files(
    state: Snapshot, slices: Sequence[FileSlice], wanted: pa.StringArray, index: str
) -> frozenset[FileGroupId]:
    """The file groups whose base file's filter has none of some texts, and that have no logs."""
    plain: dict[str, dict[str, FileGroupId]] = {}
    for one in slices:
        if one.base_file is not None and not one.log_files:
            plain.setdefault(one.partition, {})[one.base_file.name] = one.key
    filters = state.metadata.partition(index)
    found: set[FileGroupId] = set()
    for partition, keys in plain.items():
        try:
            known = file_filters(filters, partition, list(keys))
        except InvalidRequest:
            # A type of filter that is not known rules nothing out.
            continue
        for name, bloom in known.items():
            if not np.any(bloom.might_contain(wanted)):
                found.add(keys[name])
    return frozenset(found)
