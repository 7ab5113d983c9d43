"""Moving a timeline to the layout of another table version.

All that it says is written in the new form first; the table's properties decide which one counts,
and the old one goes after that. So a crash leaves a table of one version or the other, whole, and
the same call goes on.
"""

from collections.abc import Iterator
from dataclasses import replace

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata import replace as replacement
from lakewarden.engine.formats.instant_metadata.replace import commit_content
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableType
from lakewarden.engine.timeline.archived.rows import ENTRIES_FILE, ArchivedInstant
from lakewarden.engine.timeline.archived.writer import add_to_archive
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    FOLDER_KEEPER,
    Action,
    Instant,
    Layout,
    StateFile,
    create_instant,
)
from lakewarden.engine.timeline.next_time import following
from lakewarden.engine.timeline.timeline import MOVED, ActiveTimeline, Timeline

_ALL = frozenset(Action)


def refuse_logs(snapshot: Snapshot, after: Layout) -> None:
    """Refuse a table with logs that the other layout would take for those of other slices.

    On the way from layout 1 that are logs of the newest slices: those of older ones lie where they
    did. On the way to it there may be none, as names decide there.
    """
    names = [one.log_files[0].name for one in with_logs(snapshot)]
    if after.version == 1 and not names:
        files = snapshot.source(use_metadata=True).files().values()
        names = [one.name for some in files for one in some if isinstance(one, LogFile)]
    if names:
        raise InvalidRequest(
            "logs_to_compact",
            what=f"The table has logs, as {names[0]}.",
            why="Version 6 and later ones read logs by different rules.",
            now=(
                "Compact the table. For version 6 clean it, too: KEEP_LATEST_FILE_VERSIONS with 1 "
                "version, and no savepoint with logs."
            ),
            file=names[0],
        )


def with_logs(snapshot: Snapshot) -> tuple[FileSlice, ...]:
    """The newest slices that have logs."""
    if snapshot.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    return tuple(one for one in latest_file_slices(snapshot, None) if one.log_files)


def copy_timeline(storage: Storage, timeline: Timeline, after: Layout, now_ms: int) -> None:
    """Step `version-change.timeline`: write all instants, active and archived, in a layout.

    What an earlier attempt has left there is replaced.
    """
    _remove_instants(storage, after)
    storage.put(f"{after.history_folder}/{FOLDER_KEEPER}", b"")
    known = {instant.key for instant in timeline.active.instants}
    rows = [
        replace(row, instant=_completed(row.instant))
        for row in timeline.archive.rows(_ALL)
        if row.instant.key not in known
    ]
    if rows:
        add_to_archive(storage, after, [_in_form(row, after) for row in rows], now_ms)
    for files in timeline.active.files:
        for file in files:
            content = _content(timeline.active, file, after)
            create_instant(storage, after, _completed(file.instant), content)
    storage.delete(f"{after.folder}/{MOVED}")


def remove_timeline(storage: Storage, layout: Layout) -> None:
    """Step `version-change.leave`: remove what a layout has that is not the table's any more.

    A reader that has read the properties before, and lists the folder now, finds the note first: it
    must not take what is left for all that there is.
    """
    storage.put(f"{layout.folder}/{MOVED}", b"")
    _remove_instants(storage, layout)


def _remove_instants(storage: Storage, layout: Layout) -> None:
    listed = storage.list(layout.folder).files
    storage.delete_all([entry.path for entry in listed if layout.parse(entry) is not None])
    storage.delete_all(list(_archived_files(storage, layout)))


def _archived_files(storage: Storage, layout: Layout) -> Iterator[str]:
    """The files of an archive; in layout 1 they may lie among others."""
    for entry in storage.list(layout.history_folder).files:
        if layout.version > 1 or ENTRIES_FILE.fullmatch(entry.name) or entry.name == FOLDER_KEEPER:
            yield entry.path


def _completed(instant: Instant) -> Instant:
    """An instant that completed after it began, whatever the time of a file said."""
    is_early = instant.completed is not None and instant.completed <= instant.requested
    return replace(instant, completed=following(instant.requested)) if is_early else instant


def _in_form(row: ArchivedInstant, after: Layout) -> ArchivedInstant:
    """An archived instant with its contents as files of a layout would have them."""
    return replace(row, metadata=_converted(row.instant, row.metadata or b"", after) or None)


def _content(active: ActiveTimeline, file: StateFile, after: Layout) -> bytes:
    content = active.read(file.instant) if file.entry.size_bytes else b""
    is_plan = active.files_of(file.instant)
    if is_plan is not None and is_plan.requested == file:
        return content
    return _converted(file.instant, content, after)


def _converted(instant: Instant, content: bytes, after: Layout) -> bytes:
    """What a commit of any kind says, in the form of a layout; all else is the same in both."""
    if not content or instant.action.completed_as not in COMPLETED_WRITES:
        return content
    is_replacement = instant.is_completed and instant.action is Action.REPLACE_COMMIT
    decode = replacement.decode if is_replacement else commit.decode
    return commit_content(decode(content, f"{instant}"), as_json=after.has_json)
