"""Planning queries: from what a caller wants to a scan, every step of pruning explained.

Times that callers give: instants of the timeline, or dates and times in the table's zone.

Wanted keys: the record keys that the rows of a filter can have.

A filter that holds the key columns to certain values is a lookup. The answer may name keys that no
row has, and is None as soon as a row might have another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroup, FileSlice
from lakewarden.engine.kernel.clock import Zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.column_stats import column_ranges
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, RECORD_INDEX
from lakewarden.engine.read.conditions.needs import Need, Needs, needs_of
from lakewarden.engine.read.merge.predicate import (
    Alternative,
    Filter,
    Predicate,
    bind_filter,
    check_columns,
    equalities,
)
from lakewarden.engine.read.merge.spec import BlockJudge, ReadSpec
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.expression_pruning import prune_by_expressions
from lakewarden.engine.read.query.index_pruning import (
    ReadOf,
    prune_by_filters,
    prune_by_keys,
    prune_by_partitions,
)
from lakewarden.engine.read.query.index_trust import IndexTrust
from lakewarden.engine.read.query.prune import SkippedPart, prune_partitions, prune_slices
from lakewarden.engine.read.query.removed_files import Past
from lakewarden.engine.read.query.retention import check_retained
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import COMPLEX_GENERATORS
from lakewarden.engine.table.keygen.key_scheme import (
    has_known_keys,
    joined_keys,
    key_column,
    key_texts,
)
from lakewarden.engine.table.keygen.virtual_keys import virtual_keys
from lakewarden.engine.table.schema import RECORD_KEY

Time: TypeAlias = str | datetime

_FULL, _SECONDS = 17, 14


def parse_time(given: Time | None, zone: Zone) -> str | None:
    """A caller's time as an instant; shorter instants and ISO texts mean the end of their span.

    What says its own zone is taken to that of the table.
    """
    if given is None:
        return None
    if isinstance(given, str) and given.isdecimal():
        # An instant of whole seconds means the last millisecond of its second, as in Java.
        return given.ljust(_FULL, "9") if len(given) >= _SECONDS else given
    moment = _moment(given)
    if moment.tzinfo is not None:
        moment = zone.wall(round(moment.timestamp() * 1000))
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def required_time(given: Time, zone: Zone) -> str:
    """The same for a time that can't be skipped."""
    time = parse_time(given, zone)
    if time is None:
        raise _bad_time(given)
    return time


def _moment(given: object) -> datetime:
    if isinstance(given, datetime):
        return given
    try:
        return datetime.fromisoformat(given if isinstance(given, str) else "")
    except ValueError:
        raise _bad_time(given) from None


def _bad_time(given: object) -> InvalidRequest:
    return InvalidRequest(
        "bad_time",
        what=f"{given!r} is not a time of the timeline.",
        why=(
            "A time is an instant such as '20261118101500123', '2026-11-18 10:15:00', or a "
            "datetime."
        ),
        now="Take one from the timeline.",
    )


# For more keys than these reading the files costs less than asking for each of them.
KEYS_MAX = 100_000


def wanted_keys(state: Snapshot, predicate: Predicate | None, schema: pa.Schema) -> pa.Array | None:
    """The distinct keys that rows of the filter can have; None where they are not known."""
    if predicate is None:
        return None
    parts = [_keys(state, one, schema) for one in equalities(predicate.expression)]
    if any(part is None for part in parts):
        return None
    return pa.concat_arrays([pa.array([], pa.string()), *parts]).unique()


def _keys(state: Snapshot, alternative: Alternative, schema: pa.Schema) -> pa.Array | None:
    config = state.config
    if RECORD_KEY in alternative:
        return _values(alternative[RECORD_KEY], pa.string())
    fields = config.key_fields
    # A renamed column has another name in the properties.
    if state.history.versions or not has_known_keys(config):
        return None
    if any(name not in alternative for name in fields):
        return None
    if any(name not in schema.names for name in fields):
        return None
    columns = [_values(alternative[name], schema.field(name).type) for name in fields]
    if any(column is None for column in columns):
        return None
    rows = _every_combination(dict(zip(fields, columns, strict=True)))
    if rows is None:
        return None
    spellings = {len(fields) > 1} | (
        {True} if config.key_generator in COMPLEX_GENERATORS else set()
    )
    parts = key_texts(rows, fields)
    texts = [joined_keys(parts, fields, names_fields=one) for one in sorted(spellings)]
    return pa.concat_arrays(texts)


def _values(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Values of a filter as a key column holds them, if there is no doubt how keys spell them."""
    kinds = (pa.types.is_string, pa.types.is_integer)
    if not any(is_kind(type_) and is_kind(values.type) for is_kind in kinds):
        return None
    if values.null_count or len(values) > KEYS_MAX:
        return None
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        # A number that the column has no room for; so it is in no row, which Arrow finds out.
        return None


def _every_combination(columns: dict[str, pa.Array]) -> pa.Table | None:
    """A row for each combination of values, unless these are too many."""
    rows = pa.table({"": pa.nulls(1)})
    for name, values in columns.items():
        if len(rows) * len(values) > KEYS_MAX:
            return None
        places = pa.array([at for at in range(len(rows)) for _ in range(len(values))], pa.int64())
        repeated = pa.chunked_array([values] * len(rows), values.type)
        rows = rows.take(places).append_column(name, repeated)
    return rows


class Mode(Enum):
    """Whether logs are merged, or only base files are read."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


@dataclass(frozen=True, slots=True)
class Query:
    """What a caller wants of a table."""

    columns: Sequence[str] | None = None
    filter: Filter | None = None
    as_of: Time | None = None
    mode: str = Mode.SNAPSHOT.value
    use_metadata: bool = True
    # What else is known of the wanted rows; the caller filters by it.
    needs: tuple[Need, ...] = ()


def plan_query(state: Snapshot, query: Query) -> Scan:
    """The scan that answers a snapshot, read-optimised or time-travel query."""
    mode = _mode(query.mode)
    as_of = parse_time(query.as_of, state.zone)
    spec = read_spec(state, query, as_of)
    partitions, skipped = _partitions(state, spec.schema, spec.predicate, query)
    read = _read_of(state, spec, query, mode) if query.use_metadata else None
    partitions, skipped, uses = prune_by_partitions(read, partitions, skipped)
    if as_of is None and partitions is None and query.use_metadata:
        groups = state.newest_groups
    else:
        visibility = state.visibility(as_of)
        groups = state.file_groups(visibility, partitions, use_metadata=query.use_metadata)
        if as_of is not None:
            check_retained(state, as_of, Past(visibility, groups, partitions))
    slices = tuple(filter(None, (_slice(group, mode) for group in groups)))
    return _with_indexes(read, Scan(slices, skipped, spec, uses))


def _read_of(state: Snapshot, spec: ReadSpec, query: Query, mode: Mode) -> ReadOf | None:
    """What decides which indexes may serve a query; None where it has no filter."""
    if spec.predicate is None and not query.needs:
        return None
    past = None if query.as_of is None else "it is of the newest rows, not of those of that time"
    if mode is not Mode.SNAPSHOT:
        past = "it is of the newest rows, and base files may have older ones"
    needs = _needs(spec, query)
    return ReadOf(state, spec.predicate, spec.schema, IndexTrust(state), needs, past)


def _needs(spec: ReadSpec, query: Query) -> Needs:
    """What the wanted rows have to fulfil, as far as indexes may know of it."""
    needs: Needs = ((),)
    if isinstance(query.filter, str):
        needs = needs_of(query.filter, spec.schema)
    elif spec.predicate is not None and spec.predicate.conditions is not None:
        needs = spec.predicate.conditions
    return tuple((*group, *query.needs) for group in needs)


def _with_indexes(read: ReadOf | None, scan: Scan) -> Scan:
    """The scan without the slices that statistics and indexes exclude."""
    if read is None or not scan.slices:
        return scan
    scan = prune_by_keys(read, scan)
    if any(one.index == RECORD_INDEX and one.reason is None for one in scan.indexes):
        # Each of them has a wanted row: what is known of files has nothing to add.
        return scan
    scan = narrow(read.state, scan)
    return prune_by_filters(read, prune_by_expressions(read, scan))


def slices_as_of(
    state: Snapshot, partitions: tuple[str, ...] | None, as_of: Time | None, *, use_metadata: bool
) -> tuple[FileSlice, ...]:
    """The slices of some partitions that a snapshot query reads."""
    moment = parse_time(as_of, state.zone)
    visibility = state.visibility(moment)
    groups = state.file_groups(visibility, partitions, use_metadata=use_metadata)
    if moment is not None:
        check_retained(state, moment, Past(visibility, groups, partitions))
    return tuple(group.latest_merged() for group in groups)


def read_spec(state: Snapshot, query: Query, as_of: str | None) -> ReadSpec:
    """What every slice of the query is read with; columns and filter are checked here."""
    config = state.config
    schema = state.schema(as_of).with_meta()
    # A table that stores no meta columns shows none; yet each of its rows has a key and a path.
    shown = state.reader_schema(as_of) if query.columns is None else schema
    predicate = bind_filter(query.filter, schema)
    return ReadSpec(
        schema=schema,
        columns=check_columns(query.columns, shown),
        predicate=predicate,
        rules=config.merge,
        partitions=config.partitions,
        virtual_keys=virtual_keys(config),
        drops_partition_columns=config.drops_partition_columns,
        blocks=block_judge(state, as_of),
        history=state.history.until(as_of),
        # A renamed column has another name in the properties.
        key_column=None if state.history.versions else key_column(config, schema),
        keys=wanted_keys(state, predicate, schema),
    )


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise InvalidRequest(
            "bad_mode",
            what=f"Lakewarden has no read mode {text!r}.",
            why=f"It can be {' or '.join(mode.value for mode in Mode)}.",
            now="Leave it out to read a snapshot.",
        ) from None


def block_judge(state: Snapshot, as_of: str | None) -> BlockJudge:
    """Which log blocks count in a table as of a moment."""
    if state.config.version >= 8:
        return BlockJudge(as_of=as_of)
    active = state.timeline.active
    first, completed = active.first_write(), active.completed()
    if first is None and completed:
        # Whatever else is newer than the savepoints was undone, or is archived.
        first = completed[0]
        completed += state.timeline.archive.instants(first.requested)
    return BlockJudge(
        completed=frozenset(instant.requested for instant in completed),
        first_active=first.requested if first else "",
        as_of=as_of,
        skips_corrupt=True,
    )


def _partitions(
    state: Snapshot, schema: pa.Schema, predicate: Predicate | None, query: Query
) -> tuple[tuple[str, ...] | None, tuple[SkippedPart, ...]]:
    """The partitions to look into; None means all of them, found while listing."""
    fields = {field.name for field in state.config.partitions.fields}
    if predicate is None or not fields & set(predicate.columns):
        return None, ()
    partitions = state.source(use_metadata=query.use_metadata).partitions()
    return prune_partitions(partitions, state.config.partitions, schema, predicate)


def _slice(group: FileGroup, mode: Mode) -> FileSlice | None:
    return group.latest_merged() if mode is Mode.SNAPSHOT else group.latest_base()


def narrow(state: Snapshot, scan: Scan) -> Scan:
    """The scan without the slices that column statistics exclude."""
    predicate = scan.spec.predicate
    if predicate is None or not scan.slices or not state.config.has_metadata(COLUMN_STATS):
        return scan
    stored, history = scan.spec.stored, scan.spec.history
    columns = [one for one in predicate.columns if one in stored and history.is_steady(one)]
    if not columns:
        return scan
    partitions = sorted({slice_.partition for slice_ in scan.slices})
    ranges = column_ranges(state.metadata.partition(COLUMN_STATS), columns, partitions)
    kept, excluded = prune_slices(scan.slices, ranges, scan.spec.schema, predicate)
    return replace(scan, slices=kept, skipped=scan.skipped + excluded)
