"""Retention: how far back a query may look, since cleaning removed older files for good.

It goes by what cleans have removed, and not by what they were to keep.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.listing import PartitionFiles
from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import savepoint
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.read.query.removed_files import (
    Past,
    PlacedFile,
    Replaced,
    archived_replaces,
    first_missed,
    removals,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Instant
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Retention(Shown):
    """What can still be asked of a table's past; None stands for all there was."""

    # From here on, time travel shows every row.
    earliest_as_of: str | None = None
    as_of_set_by: str | None = None
    # A window that begins here or later is answered whatever its end. One that has no end is
    # answered wherever it begins, and so is one that ends at `earliest_end` or later.
    earliest_changes: str | None = None
    changes_set_by: str | None = None
    earliest_end: str | None = None
    # The first write from which on the table can be taken back to every one, None without any.
    earliest_restore: str | None = None
    # None where nothing older was archived or cleaned.
    restore_set_by: str | None = None
    # Older moments that stay readable, and that the table can be restored to.
    savepoints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"time travel from {_named(self.earliest_as_of, self.as_of_set_by)}, "
            f"changes from {_named(self.earliest_changes, self.changes_set_by)}, "
            f"restore from {_named(self.earliest_restore, self.restore_set_by)}"
        )


def check_retained(state: Snapshot, moment: str, past: Past) -> None:
    """Refuse to read a past state of which a clean, by any engine, has removed files."""
    check_whole(state, moment, past, _until(state, moment, past))


def check_whole(state: Snapshot, moment: str, past: Past, until: str | None = None) -> None:
    """Refuse what the table was at a moment, if a clean since then has left it short of files."""
    missed = first_missed(state, past, moment, until)
    if missed is None:
        return
    clean = missed.clean.requested
    earliest = retention(state).earliest_as_of or clean
    raise InvalidRequest(
        "history_cleaned",
        what=f"Lakewarden can no longer read the table as of {moment}.",
        why=missed.why,
        now=f"Choose {earliest} or later. Savepoints keep older files.",
        as_of=moment,
        earliest=earliest,
        clean=clean,
    )


def retention(state: Snapshot) -> Retention:
    """How far back a table can be asked; the cleans are read from the newest on."""
    files = state.source(use_metadata=True).files()
    bounds = _bounds(state, Past.of(files, state.visibility()))
    restored = _earliest_restore(state.timeline, bounds)
    return Retention(
        earliest_as_of=bounds.as_of.time or None,
        as_of_set_by=bounds.as_of.set_by,
        earliest_changes=bounds.changes.time or None,
        changes_set_by=bounds.changes.set_by,
        earliest_end=bounds.end.time or None,
        earliest_restore=restored.time or None,
        restore_set_by=restored.set_by,
        savepoints=tuple(_readable_savepoints(state, files, bounds.as_of.time)),
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    """A time, and the instant that has set it."""

    time: str = ""
    set_by: str | None = None

    def later(self, time: str, set_by: str) -> "_Bound":
        return _Bound(time, set_by) if time > self.time else self


@dataclass(frozen=True, slots=True)
class _Bounds:
    as_of: _Bound = _Bound()
    changes: _Bound = _Bound()
    end: _Bound = _Bound()


def _bounds(state: Snapshot, now: Past) -> _Bounds:
    """What the removed files were superseded by, and when they were written, at the latest.

    All that a clean has removed was superseded before it began, so that the older ones of some
    time on set no bound any more.
    """
    successors, bounds = _Successors(state.timeline, now), _Bounds()
    for removal in removals(state.timeline):
        time = removal.clean.requested
        if time <= min(bounds.as_of.time, bounds.changes.time, bounds.end.time):
            break
        for removed in removal.files:
            if state.timeline.is_completed(removed.instant):
                successor = successors.of(removed) or time
                bounds = _Bounds(
                    bounds.as_of.later(successor, time),
                    bounds.changes.later(_written(state, removed, successor), time),
                    bounds.end.later(min(_moment(state, successor), time), time),
                )
    return bounds


class _Successors:
    """What follows each file in its group; the archive is read once, and only if needed."""

    def __init__(self, timeline: Timeline, now: Past) -> None:
        self._timeline, self._now = timeline, now
        self._archived: Replaced | None = None
        self._bases = {
            group.key: [one.base_instant for one in group.slices if one.base_file is not None]
            for group in now.groups
        }

    def of(self, removed: PlacedFile) -> str | None:
        """The base file, or the replace commit, from which on a removed file is not missed."""
        later = [base for base in self._bases.get(removed.key, ()) if base > removed.instant]
        replaced = self._now.visibility.replaced.get(removed.key)
        if later or replaced is not None:
            return min([*later, *filter(None, [replaced])])
        if self._archived is None:
            self._archived = archived_replaces(self._timeline, "")
        return next(iter(self._archived.after(removed)), None)


def _written(state: Snapshot, removed: PlacedFile, successor: str) -> str:
    """When a removed file was last written to, as windows are measured."""
    if state.config.version < 8 and isinstance(removed.file, LogFile):
        # Version 6 writes on to a log until the next slice begins.
        return successor
    return _moment(state, removed.instant)


def _moment(state: Snapshot, requested: str) -> str:
    """What a window is measured by; version 6 records no completion times."""
    if state.config.version < 8:
        return requested
    return state.timeline.completion_time(requested) or requested


def _earliest_restore(timeline: Timeline, bounds: _Bounds) -> _Bound:
    """A write can be gone back to while no later one is archived, and its files are there."""
    writes = timeline.active.completed()
    archived = [
        one.requested for one in timeline.archive.instants() if one.action in COMPLETED_WRITES
    ]
    newest = max(archived, default=None)
    reached = [one for one in writes if one.requested >= (newest or "")]
    passed = [one.requested for one in reached if not _has_files(one, bounds)]
    kept = [one.requested for one in reached if one.requested > max(passed, default="")]
    if not kept:
        return _Bound()
    return _Bound(kept[0], bounds.as_of.set_by if passed else newest)


def _has_files(write: Instant, bounds: _Bounds) -> bool:
    completed = write.completed or ""
    return write.requested >= bounds.as_of.time and completed >= bounds.end.time


def _readable_savepoints(state: Snapshot, files: PartitionFiles, before: str) -> Iterator[str]:
    active = state.timeline.active
    for one in active.savepoints():
        if one.requested < before and is_whole_container(active.read(one)):
            past = Past.of(files, state.visibility(one.requested))
            if first_missed(state, past, one.requested) is None:
                yield one.requested


def _until(state: Snapshot, moment: str, past: Past) -> str | None:
    """The last clean that matters: a savepoint that has all its files has kept them since then."""
    active = state.timeline.active
    own = next((one for one in active.savepoints() if one.requested == moment), None)
    if own is None or active.layout.version == 1:
        return None
    content = active.read(own)
    if not is_whole_container(content):
        return None
    there = {
        (group.key.partition, file.name)
        for group in past.groups
        for slice_ in group.slices
        for file in slice_.files
    }
    listed = savepoint.decode(content, active.path(own)).partition_metadata
    named = {
        (partition, name)
        for partition, one in listed.items()
        if past.partitions is None or partition in past.partitions
        for name in one.savepoint_data_file
    }
    return own.completed if named <= there else None


def _named(time: str | None, set_by: str | None) -> str:
    if time is None:
        return "the beginning"
    return time if set_by is None else f"{time} (set by {set_by})"
