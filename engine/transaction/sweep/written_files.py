"""The data files an instant has made: where to look for them, and how they are removed."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.storage.side_by_side import asks_ahead, together
from lakewarden.engine.timeline.ledger.ledger import Ledger, assert_may_delete
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import MarkedFile, read_markers
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS

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
