"""Sweeps: late removal of what a paused attempt may still write after its rollback.

A rollback leaves an entry that comes due after the longest pause that is tolerated. The process
that finds it due looks once more for files that carry the instant, and removes them.

The data files an instant has made: where to look for them, and how they are removed.

Markers of ended instants, deleted on request.

As long as an instant is pending, its rollback goes by its markers: without them, files that no
record names would stay.

Instant cleanup: the markers and heartbeats of an ended instant are removed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lakewarden.engine.conflicts.group_hashes import announcement_paths
from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.formats.instant_metadata import commit, replace
from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.paths import check_partition
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.storage.side_by_side import asks_ahead, both, together
from lakewarden.engine.timeline.heartbeats import heartbeat_path, standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import (
    PRIVATE_FOLDER,
    Cancelled,
    Claim,
    Committed,
    Withdrawn,
    format_document,
    parse_document,
)
from lakewarden.engine.timeline.ledger.ledger import Ledger, assert_may_delete, read_ledger
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.transaction.state.markers import (
    MarkedFile,
    delete_markers,
    marker_folder,
    read_markers,
)
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS, SWEEP_DELAY_SECONDS

AnswerT = TypeVar("AnswerT")


def find_written(
    storage: Storage, instant: str, *, without_markers: tuple[str, ...] | None = None
) -> tuple[MarkedFile, ...]:
    """The data files on storage that carry an instant in their names, sorted.

    Markers say in which partitions to look. An instant without any marker is looked for in the
    given partitions, or else everywhere: if it had left files all the same, their rows would come
    to light one day.
    """
    marked = read_markers(storage, instant)
    if marked is None:
        places = None if without_markers is None else list(without_markers)
        return written_in(storage, instant, places)
    return written_in(storage, instant, sorted({file.partition for file in marked}))


def written_in(
    storage: Storage, instant: str, partitions: list[str] | None
) -> tuple[MarkedFile, ...]:
    """The data files of an instant in some partitions, in all of them without any."""
    listed = StorageListing(storage).files(partitions)
    return tuple(
        sorted(
            MarkedFile(partition, file.name)
            for partition, files in listed.items()
            for file in files
            if file.instant == instant
        )
    )


def remove_written(
    context: Context, ledger: Ledger, attempt: int, files: Iterable[MarkedFile]
) -> int:
    """Remove files that an attempt at an instant made, by law 1; those already gone are no error.

    The number tells how many were still there.
    """
    assert_may_delete(ledger, attempt)
    chosen = sorted(set(files))
    for file in chosen:
        named = parse_file_name(file.name, 0)
        # Whatever made the list, nothing but a file of this very instant is ever touched.
        assert named is not None, file
        assert named.instant == ledger.instant, file
    return delete_paths(context, [file.path for file in chosen])


def delete_paths(context: Context, paths: list[str]) -> int:
    """Delete files side by side; how many were there."""
    return sum(_answers(context, context.storage.delete, paths))


def look_at_paths(context: Context, paths: list[str]) -> tuple[Entry | None, ...]:
    """The entries of files, side by side; None for one that is not there."""
    return tuple(_answers(context, context.storage.stat, paths))


def _answers(
    context: Context, call: Callable[[str], AnswerT], paths: list[str]
) -> Iterable[AnswerT]:
    """What a call says of each path; it waits for the storage, not for a processor."""
    if asks_ahead(context.storage):
        return together(context.storage, [partial(call, path) for path in paths])
    threads = min(context.settings[STORAGE_THREADS], max(len(paths), 1))
    return LocalExecutor(threads).map(call, paths)


def attempt_of(name: str) -> int:
    """The attempt that made a file, if it is one of ours: the last number of its write token.

    Another engine has some number of its own there, and 0 stands for none at all.
    """
    named = parse_file_name(name, 0)
    number = "" if named is None else named.write_token.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def remove_markers(context: Context, instant: str, *, dry_run: bool = False) -> int:
    """Remove the markers of an instant that is not pending; the number of files removed."""
    # The instant becomes part of a path.
    if not instant.isdecimal():
        raise InvalidRequest(
            "bad_instant",
            what=f"{instant!r} is not an instant.",
            why="Instants are digits, such as 20261118101500123.",
            now="Take one from show_markers.",
            instant=instant,
        )
    files = load_for_writing(context).pending(instant)
    if files is not None:
        raise InvalidRequest(
            "markers_needed",
            what=f"The markers of {instant} were not removed.",
            why=f"The {files.started_as.value} is pending, and its rollback would need them.",
            now="Wait until it ends, cancel it or roll it back: that deletes its markers.",
            instant=instant,
        )
    if dry_run:
        return len(context.storage.walk(marker_folder(instant)))
    return delete_markers(context.storage, instant)


def clean_up_instant(storage: Storage, ledger: Ledger) -> None:
    """Remove what is of no use any more; a crash leaves some of it, which does no harm."""
    markers, beats = delete_markers, delete_heartbeats
    both(storage, partial(markers, storage, ledger.instant), partial(beats, storage, ledger))


def delete_heartbeats(storage: Storage, ledger: Ledger) -> None:
    """Remove the heartbeats of all attempts at an instant that has ended, and what it announced."""
    claims = (entry for entry in ledger.entries if isinstance(entry, Claim))
    beats = [heartbeat_path(ledger.instant, claim.attempt) for claim in claims]
    announced = announcement_paths(ledger.instant)
    storage.delete_all([*beats, *announced, standard_path(ledger.instant)])


SWEEPS_FOLDER = f"{PRIVATE_FOLDER}/sweeps"

_KIND = "sweep"
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledSweep:
    """When to look again for files of an instant, and in which partitions at least."""

    instant: str
    due_ms: int
    partitions: tuple[str, ...] = ()
    # The places are not known, so look at all partitions.
    is_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Swept:
    """An instant that was looked at again, and how many late files it had left."""

    instant: str
    files_deleted: int


def sweep_path(due_ms: int, instant: str) -> str:
    return f"{SWEEPS_FOLDER}/{due_ms}.{instant}.json"


def schedule_sweep(
    context: Context, instant: str, partitions: Iterable[str], *, is_everywhere: bool = False
) -> None:
    """Have an instant looked at again, once no paused attempt at it can be alive any more.

    Also where it has announced files that are not there: it may be about to write them.
    """
    due_ms = context.now_ms() + context.settings[SWEEP_DELAY_SECONDS] * 1000
    places = tuple(sorted(_marked(context, instant) | set(partitions)))
    entry = ScheduledSweep(
        instant=instant, due_ms=due_ms, partitions=places, is_everywhere=is_everywhere
    )
    context.storage.put(sweep_path(due_ms, instant), format_document(_KIND, entry))


def clear_behind(context: Context, ledger: Ledger, swept: Iterable[str]) -> None:
    """Remove the traces of an instant that was rolled back, and was to be swept in some partitions.

    A paused attempt may have announced a file meanwhile, and write it when its marker is gone: what
    the markers say is kept for the sweep. One that comes between the look and the removal shows
    by the number of files removed.
    """
    instant = ledger.instant
    announced = len(context.storage.walk(marker_folder(instant)))
    if _marked(context, instant) - set(swept):
        schedule_sweep(context, instant, swept)
    if delete_markers(context.storage, instant) > announced:
        schedule_sweep(context, instant, swept, is_everywhere=True)
    # The markers are not removed once more: the count would lack those that come meanwhile.
    delete_heartbeats(context.storage, ledger)


@dataclass(frozen=True, slots=True, order=True)
class DueSweep:
    """An entry that says to look again at an instant, and since when."""

    due_ms: int
    instant: str
    path: str


def sweep(context: Context, *, dry_run: bool = False) -> tuple[Swept, ...]:
    """Remove late files of every instant whose sweep is due; one listing when none is.

    Steps of `sweep`: due, ledger, list, files, entry. A crash before `sweep.entry` leaves the entry
    to the next sweep. A dry run tells what would go.
    """
    swept = []
    for due in due_sweeps(context):
        late = _late(context, due)
        if late is None:
            continue
        deleted = len(late.files)
        if not dry_run:
            deleted = _remove(context, late)
            context.storage.delete(due.path)
        swept.append(Swept(due.instant, deleted))
    return tuple(swept)


def due_sweeps(context: Context) -> tuple[DueSweep, ...]:
    """The sweeps whose time has come, those that were due first in front."""
    found = sorted(
        DueSweep(int(match[1]), match[2], file.path)
        for file in context.storage.list(SWEEPS_FOLDER).files
        if (match := _NAME.fullmatch(file.name))
    )
    return tuple(one for one in found if one.due_ms <= context.now_ms())


@dataclass(frozen=True, slots=True)
class _Late:
    """The late files of an instant, and the newest attempt that may have written them."""

    ledger: Ledger
    files: Sequence[MarkedFile] = ()
    # None where the ledger allows nothing: then the entry means nothing.
    attempt: int | None = None


def _late(context: Context, due: DueSweep) -> _Late | None:
    """What is to be removed; None while an attempt is at work, so that it is too early."""
    ledger = read_ledger(context.storage, due.instant)
    if ledger.ends_in is LedgerEnd.CLAIM:
        return None
    files = written_in(context.storage, due.instant, _places(context, due.path, due.instant))
    match ledger.last_whole:
        case Cancelled() | Withdrawn():
            return _Late(ledger, files, ledger.next_number)
        case Committed(attempt=attempt) as entry if attempt > 1 and entry.action.is_write:
            # What the attempts before it have written since they were superseded.
            outputs = _outputs(entry)
            late = [file for file in files if not _is_of(file, attempt, outputs)]
            return _Late(ledger, late, attempt - 1)
        case _:
            # Law 1: without an end no process touches its files.
            return _Late(ledger)


def _remove(context: Context, late: _Late) -> int:
    if late.attempt is None:
        return 0
    deleted = remove_written(context, late.ledger, late.attempt, late.files)
    clean_up_instant(context.storage, late.ledger)
    return deleted


def _is_of(file: MarkedFile, attempt: int, outputs: frozenset[str]) -> bool:
    return file.name in outputs or attempt_of(file.name) == attempt


def _outputs(entry: Committed) -> frozenset[str]:
    """The names of the files that a commit is about."""
    is_replace = entry.action.completed_as is Action.REPLACE_COMMIT
    metadata = (replace if is_replace else commit).decode(entry.content, f"commit {entry.instant}")
    stats = (stat for stats in metadata.partition_to_write_stats.values() for stat in stats)
    return frozenset(path.rpartition("/")[2] for stat in stats for path in stat.outputs)


def _marked(context: Context, instant: str) -> set[str]:
    return {file.partition for file in read_markers(context.storage, instant) or ()}


def _places(context: Context, path: str, instant: str) -> list[str] | None:
    """The partitions to look at; None for all of them."""
    marked = _marked(context, instant)
    try:
        document = parse_document(context.storage.read(path), path, kinds=frozenset({_KIND}))
        entry = value_of(ScheduledSweep, document.record, path, str)
    except CorruptTable:
        # Cut short by a crash, and the attempt that finished that rollback has left another one; or
        # gone, as another process was quicker.
        return sorted(marked)
    for partition in entry.partitions:
        check_partition(partition, path)
    return None if entry.is_everywhere else sorted({*marked, *entry.partitions})
