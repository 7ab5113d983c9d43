"""Indexes, seen from outside: what each is of, how far it is, and whether reads believe it.

What decides is what builders and readers go by: the table's properties, the plans on the timeline,
their ledgers and heartbeats, and the doubts of `IndexTrust`. Looking changes nothing.

What has become of an index.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from lakewarden.engine.formats.instant_metadata import indexing
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.metadata.reading.definitions import IndexDefinition, undefined
from lakewarden.engine.metadata.reading.sizes import entries_at_most, sizes_of
from lakewarden.engine.metadata.reading.table import FILES, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    caught_up,
    finished_groups,
    planned_partitions,
    read_notes,
)
from lakewarden.engine.metadata.writing.deltacommit import reported_to
from lakewarden.engine.read.query.index_trust import IndexTrust
from lakewarden.engine.services.indexing.catch_up import CAUGHT_UP_KEY, to_catch_up_with
from lakewarden.engine.services.indexing.gather import newest_write
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.transaction.attempts.take_over import working_attempt
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.live_attempt import JAVA, LiveAttempt, newest_heartbeat
from lakewarden.engine.transaction.state.pending_instants import looked

_RESUMES = "CALL run_indexing(op => 'execute') carries it on."
_ANEW = "CALL run_indexing(op => 'execute') builds it anew."
_REFRESHES = "REFRESH INDEX builds it anew."
_ALL_ANEW = "CALL delete_metadata_table, then CALL create_metadata_table."


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
    # It is listed as ready, and does not know of all writes.
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
    instant: str | None = None
    # The write that its base files go up to, and the newest one up to which it knows of all.
    indexed_up_to: str | None = None
    caught_up_to: str | None = None
    # How many later instants it does not know of; None where that is not known.
    lag_count: int | None = None
    # At most: what has changed since a compaction counts again.
    entries_count: int = 0
    file_groups_count: int = 0
    bytes: int = 0
    # Who builds it, or has left it.
    owner: str | None = None
    step: str | None = None
    # How many of its base files are there, from 0 to 1.
    done_ratio: float | None = None
    # The instant that a catch-up waits for.
    waits_for: str | None = None
    # Why it is abandoned or stale, or why reads leave it out.
    reason: str | None = None


def index_views(context: Context) -> tuple[IndexView, ...]:
    """The indexes of a table, those included that are only planned."""
    return retrying_view(partial(looked, context), partial(_index_views, context))


def known_indexes(state: Snapshot) -> tuple[IndexDefinition, ...]:
    """All but `files` that the properties, the definitions or pending plans name."""
    known = {one.partition: one for one in state.definitions}
    for partition in pending_builds(state):
        known.setdefault(partition, undefined(partition, IndexState.PLANNED))
    known.pop(FILES, None)
    return tuple(known[name] for name in sorted(known))


def pending_builds(state: Snapshot) -> dict[str, Instant]:
    """The instants that build a partition of the metadata table and have not ended."""
    return {
        name: files.instant for name, files in _builds(state).items() if files.completed is None
    }


def _builds(state: Snapshot) -> dict[str, InstantFiles]:
    """The newest instant that builds each partition."""
    active = state.timeline.active
    found: dict[str, InstantFiles] = {}
    for files in active.files:
        if files.started_as is Action.INDEXING:
            found |= dict.fromkeys(planned_partitions(active, files), files)
    return found


def _index_views(context: Context, state: Snapshot) -> tuple[IndexView, ...]:
    scene = _Scene(context, state, IndexTrust(state), _builds(state))
    return tuple(scene.look_at(index) for index in known_indexes(state))


@dataclass(frozen=True, slots=True)
class _Scene:
    """A table at one moment, with what decides the states of its indexes."""

    context: Context
    state: Snapshot
    trust: IndexTrust
    builds: Mapping[str, InstantFiles]

    def look_at(self, index: IndexDefinition) -> IndexView:
        sizes = sizes_of(self.state.metadata, index.partition)
        files = self.builds.get(index.partition)
        view = IndexView(
            name=index.name,
            partition=index.partition,
            index_type=index.index_type,
            columns=_columns(self.state, index),
            state=IndexState.READY,
            instant=None if files is None else files.instant.requested,
            entries_count=entries_at_most(self.state.metadata, index.partition),
            file_groups_count=sizes.file_groups_count,
            bytes=sizes.base_bytes + sizes.log_bytes,
        )
        if index.partition in self.state.config.metadata_partitions:
            return self._listed(view, files)
        if files is None or files.completed is not None:
            reason = "No plan builds it. DROP INDEX removes what is left of it."
            return replace(view, state=IndexState.ABANDONED, reason=reason)
        return self._built(view, files)

    def _listed(self, view: IndexView, files: InstantFiles | None) -> IndexView:
        """An index that the properties list as ready: Java does so before it has caught up."""
        by_key = not self.trust.is_by_file(view.partition)
        doubt = self.trust.doubt(view.partition) if by_key else self.trust.gap(view.partition)
        if doubt is None and not view.file_groups_count and view.partition != RECORD_INDEX:
            doubt = "its files are gone"
        is_unfinished = files is not None and files.completed is None and files.inflight is not None
        if doubt is not None and files is not None and is_unfinished:
            view = self._built(view, files)
            if self._live(files) is not None:
                return replace(view, state=IndexState.CATCHING_UP, reason=_said(doubt))
            return replace(view, state=IndexState.ABANDONED, reason=f"{_said(doubt)} {_ANEW}")
        upto, covered = self._covered(view.partition, files)
        if doubt is not None:
            is_deaf = self.trust.unheard_write() is not None
            reason = f"{_said(doubt)} {_ALL_ANEW if is_deaf else _REFRESHES}"
            return replace(
                view,
                state=IndexState.STALE,
                indexed_up_to=upto,
                caught_up_to=covered,
                reason=reason,
            )
        unused = self.trust.doubt_of_partitions() if view.partition == PARTITION_STATS else None
        return replace(
            view,
            indexed_up_to=upto,
            caught_up_to=newest_write(self.state),
            lag_count=0,
            done_ratio=1.0,
            reason=None if unused is None else f"Reads do not use it: {unused}.",
        )

    def _covered(self, partition: str, files: InstantFiles | None) -> tuple[str | None, str | None]:
        """What its completed build says that it was built on, and had caught up with."""
        active = self.state.timeline.active
        if files is None or files.completed is None:
            return None, None
        done = indexing.decode(active.read(files.instant), files.completed.entry.path)
        for info in done.index_partition_infos:
            if info.metadata_partition_path == partition:
                covered = info.extra_metadata.get(CAUGHT_UP_KEY)
                return info.index_upto_instant or None, covered or None
        return None, None

    def _built(self, view: IndexView, files: InstantFiles) -> IndexView:
        """An index whose build has not ended."""
        instant = files.instant.requested
        notes = read_notes(self.state.storage, instant)
        planned = planned_partitions(self.state.timeline.active, files).get(view.partition)
        view = replace(view, indexed_up_to=(planned and planned.index_upto_instant) or None)
        if notes is not None and view.partition in notes.partitions:
            view = self._noted(view, notes)
        claim = self.state.ledger(instant).last_claim
        if claim is None and files.inflight is None:
            return replace(view, state=IndexState.PLANNED, owner=None)
        live = self._live(files)
        state, reason = self._stage(view, notes, files, live)
        return replace(
            view,
            state=state,
            owner=JAVA if claim is None else f"{claim.owner} on {claim.host}",
            step=(live.step or None) if live else None,
            reason=reason,
        )

    def _stage(
        self,
        view: IndexView,
        notes: BuildNotes | None,
        files: InstantFiles,
        live: LiveAttempt | None,
    ) -> tuple[IndexState, str | None]:
        """How far a build is that was started, and why it stands still if it does."""
        ledger = self.state.ledger(files.instant.requested)
        has_base = notes is not None and notes.has_base
        stage = IndexState.CATCHING_UP if has_base else IndexState.BUILDING
        if ledger.ends_in is LedgerEnd.COMMITTED:
            return stage, "It has committed; the next operation lists it as ready."
        if ledger.ends_in is LedgerEnd.CANCELLED:
            return IndexState.ABANDONED, "It was cancelled; the next operation removes it."
        if live is not None:
            return stage, None
        has_died = newest_heartbeat(self.context, ledger) is HeartbeatSign.DEAD
        if view.waits_for is not None and not has_died:
            reason = f"Its last attempt did not wait longer for {view.waits_for}. {_RESUMES}"
            return stage, reason
        if ledger.last_claim is None:
            reason = f"Java Hudi began it and gives no sign. {_ANEW}"
            return IndexState.ABANDONED, reason
        verb = "gives no sign any more" if has_died else "has ended"
        return IndexState.ABANDONED, f"The last attempt at it {verb}. {_RESUMES}"

    def _noted(self, view: IndexView, notes: BuildNotes) -> IndexView:
        """What a build of ours has written down, and what is there that it does not know."""
        wanted = sum(
            count
            for shard, count in notes.group_counts.items()
            if shard.startswith(f"{view.partition}/")
        )
        groups = finished_groups(self.state.storage, notes.instant).values()
        own = [one for one in groups if one.partition == view.partition]
        ratio = 1.0 if notes.has_base else len(own) / wanted if wanted else 0.0
        lacking = tuple(self._lacking(view.partition, notes))
        waiting = (one.requested for one in lacking if not one.is_completed)
        completed = (one.requested for one in self.state.timeline.active.completed())
        first = min((one.requested for one in lacking), default=None)
        covered = max((one for one in completed if first is None or one < first), default=None)
        logged = 0 if notes.has_base else sum(one.entries for one in own)
        return replace(
            view,
            indexed_up_to=notes.upto or None,
            caught_up_to=covered,
            lag_count=len(lacking),
            entries_count=view.entries_count + logged,
            done_ratio=ratio,
            waits_for=next(waiting, None) if notes.has_base else None,
        )

    def _lacking(self, partition: str, notes: BuildNotes) -> Iterator[Instant]:
        """What the build does not know of, or waits for, oldest first."""
        known = caught_up(self.state.storage, notes.instant)
        for files in to_catch_up_with(self.state, notes):
            one = files.instant
            if one.requested in known or (one.is_completed and one.action is Action.ROLLBACK):
                continue
            if one.is_completed:
                known_there = reported_to(self.state.metadata, one.requested, notes.groups_instant)
                if partition in (known_there or ()):
                    continue
            yield one

    def _live(self, files: InstantFiles) -> LiveAttempt | None:
        return working_attempt(self.context, self.state.ledger(files.instant.requested), files)


def _columns(state: Snapshot, index: IndexDefinition) -> tuple[str, ...]:
    """Definitions of the record index name no columns: it is always of the record key."""
    return state.config.key_fields if index.partition == RECORD_INDEX else index.columns


def _said(doubt: str) -> str:
    """A doubt as a sentence."""
    return f"{doubt[0].upper()}{doubt[1:]}."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexBuilt(Shown):
    """An index after a build, or as it would be after one."""

    name: str
    partition: str
    state: IndexState
    # The newest write that it knows of.
    indexed_up_to: str | None
    # None where nothing was built.
    records_count: int | None
    file_groups_count: int
    is_changed: bool
    message: str
    # The build's instant, and the newest write that it had caught up with.
    instant: str | None = None
    caught_up_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexSet(Shown):
    """The index by which all writes find keys from now on, or would."""

    index: str
    # Of a bucket index.
    buckets_count: int | None
    is_changed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexDropped(Shown):
    """An index that is gone, or would be."""

    name: str
    # None where there is no such index.
    partition: str | None
    freed_bytes: int
    is_changed: bool
    message: str
