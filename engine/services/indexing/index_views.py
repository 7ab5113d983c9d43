"""Indexes, seen from outside: what each is of, whether it can be used, and what it takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.formats.instant_metadata import indexing
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.reading.definitions import IndexDefinition, undefined
from lakewarden.engine.metadata.reading.sizes import sizes_of
from lakewarden.engine.metadata.reading.table import FILES, RECORD_INDEX
from lakewarden.engine.metadata.writing.builds import read_notes
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant, State
from lakewarden.engine.timeline.ledger.ledger import read_ledger


class IndexState(StrEnum):
    """How far an index is."""

    # Writers report to it; no attempt has started.
    PLANNED = "PLANNED"
    BUILDING = "BUILDING"
    # Its base files are there.
    CATCHING_UP = "CATCHING_UP"
    READY = "READY"
    # No process works on it any more.
    ABANDONED = "ABANDONED"
    # It is ready, and not used: it does not know of all writes.
    STALE = "STALE"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """An index, or another partition of the metadata table but `files`."""

    name: str
    partition: str
    index_type: str
    columns: tuple[str, ...]
    state: IndexState
    # The instant at which it was built or shall be, where the active timeline has one.
    instant: str | None
    file_groups_count: int
    bytes: int
    owner: str | None


def index_views(state: Snapshot) -> tuple[IndexView, ...]:
    """The indexes of a table, those included that are only planned."""
    builds = _builds(state)
    known = {one.partition: one for one in state.definitions}
    for partition in pending_builds(state):
        known.setdefault(partition, undefined(partition, IndexState.PLANNED))
    known.pop(FILES, None)
    return tuple(_index_view(state, known[name], builds.get(name)) for name in sorted(known))


def pending_builds(state: Snapshot) -> dict[str, Instant]:
    """The instants that build a partition of the metadata table and have not ended."""
    return {name: one for name, one in _builds(state).items() if not one.is_completed}


def _builds(state: Snapshot) -> dict[str, Instant]:
    """The newest instant that builds each partition."""
    found: dict[str, Instant] = {}
    for instant in state.timeline.active.instants:
        if instant.action is Action.INDEXING:
            found |= dict.fromkeys(_built_by(state, instant), instant)
    return found


def _built_by(state: Snapshot, instant: Instant) -> Iterator[str]:
    files = state.timeline.active.files_of(instant)
    if files is None or files.requested is None:
        return
    path = files.requested.entry.path
    try:
        plan = indexing.decode_plan(state.storage.read(path), path)
    except CorruptTable:
        # It was cut short by a crash, so no attempt can have started it.
        return
    for info in plan.index_partition_infos:
        if info.metadata_partition_path:
            yield info.metadata_partition_path


def _index_view(state: Snapshot, index: IndexDefinition, build: Instant | None) -> IndexView:
    sizes = sizes_of(state.metadata, index.partition)
    return IndexView(
        name=index.name,
        partition=index.partition,
        index_type=index.index_type,
        columns=_columns(state, index),
        state=_state(state, index, build),
        instant=None if build is None else build.requested,
        file_groups_count=sizes.file_groups_count,
        bytes=sizes.base_bytes + sizes.log_bytes,
        owner=None if build is None or build.is_completed else _owner(state, build),
    )


def _columns(state: Snapshot, index: IndexDefinition) -> tuple[str, ...]:
    """Definitions of the record index name no columns: it is always of the record key."""
    return state.config.key_fields if index.partition == RECORD_INDEX else index.columns


def _state(state: Snapshot, index: IndexDefinition, build: Instant | None) -> IndexState:
    if index.partition in state.config.metadata_partitions:
        return IndexState.READY
    if build is None or build.is_completed:
        return IndexState.ABANDONED
    if build.state is State.REQUESTED:
        return IndexState.PLANNED
    notes = read_notes(state.storage, build.requested)
    has_base = notes is not None and notes.has_base
    return IndexState.CATCHING_UP if has_base else IndexState.BUILDING


def _owner(state: Snapshot, build: Instant) -> str | None:
    claim = read_ledger(state.storage, build.requested).last_claim
    return None if claim is None else f"{claim.owner} on {claim.host}"
