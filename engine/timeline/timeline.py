"""The timeline: active instants, and behind them the archived ones, read only when needed.

The active timeline: the instants whose files still lie in the timeline's folder.

Loaded with one listing; contents are read only when asked for.

The completions of a timeline without some instants: as it was before them, or will be.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata.replace import decode_plan as decode_requested
from lakewarden.engine.formats.json_text import is_whole_object
from lakewarden.engine.formats.properties import PROPERTIES_FILE, parse_properties
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.shown import Row, ShownRows, row_of
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.rows import ArchivedInstant, LogArchive
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    NOTHING_SETTLED,
    Action,
    CompletedFiles,
    Instant,
    InstantFiles,
    Key,
    Layout,
    State,
    StateFile,
    epoch_ms,
    layout_of,
)
from lakewarden.engine.timeline.ledger.entries import Committed
from lakewarden.engine.timeline.ledger.ledger import read_ledger

# What a timeline remembers of contents: some operations read those of all instants once.
_KEPT_MAX = 64
_KEPT_BYTES_MAX = 1 << 20
# A savepoint has the time of the write it saves: pending or not, it says nothing of that write.
# In the folder of a timeline that has moved to another one, while and after its files go.
MOVED = "timeline.moved"
UNDER_WAY = frozenset(Action) - {Action.SAVEPOINT}


class Contents:
    """Contents of completed instants, which never change again; the newest ones that were read."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def get(self, path: str) -> bytes | None:
        return self._kept.get(path)

    def keep(self, path: str, content: bytes) -> None:
        if len(content) > _KEPT_BYTES_MAX:
            return
        self._kept[path] = content
        for oldest in list(self._kept)[:-_KEPT_MAX]:
            self._kept.pop(oldest, None)


class ActiveTimeline(ShownRows):
    """What one listing has shown; it never changes, a newer one must be loaded."""

    def __init__(
        self,
        storage: Storage,
        layout: Layout,
        by_key: Mapping[Key, InstantFiles],
        entries: tuple[Entry, ...],
        settled: CompletedFiles,
        contents: Contents | None = None,
    ) -> None:
        self.layout = layout
        # All files of the folder, as they were listed.
        self.entries = entries
        self.files = tuple(by_key.values())
        self.instants = tuple(group.instant for group in self.files)
        self.settled = settled
        self._storage = storage
        self._by_key = by_key
        # Contents of completed instants that are whole, which never change again.
        self.contents = contents or Contents()

    def is_of(self, storage: Storage) -> bool:
        """Whether contents are read from this very storage."""
        return self._storage is storage

    def again(self) -> "ActiveTimeline":
        """The same timeline as it is now, from one more listing."""
        return load_active(self._storage, self.layout, self)

    def _shown_rows(self) -> Sequence[Row]:
        return [row_of(instant) for instant in self.instants]

    def with_time(self, requested: str) -> tuple[Instant, ...]:
        """The instants of a requested time: usually one; a savepoint shares that of its write."""
        return tuple(instant for instant in self.instants if instant.requested == requested)

    def completed(self, actions: Collection[Action] = COMPLETED_WRITES) -> tuple[Instant, ...]:
        """The completed instants of some actions, writes if none are named."""
        return tuple(i for i in self.instants if i.is_completed and i.action in actions)

    def completed_between(
        self,
        since: str | None,
        until: str | None,
        actions: Collection[Action] = COMPLETED_WRITES,
    ) -> tuple[Instant, ...]:
        """Those completed after `since` and not after `until`, in the order of completion."""
        chosen = [
            instant
            for instant in self.completed(actions)
            if (since is None or _completion(instant) > since)
            and (until is None or _completion(instant) <= until)
        ]
        return tuple(sorted(chosen, key=_completion))

    def pending(self, actions: Collection[Action] = UNDER_WAY) -> tuple[Instant, ...]:
        """The instants that are not completed, of all actions but savepoints if none are named."""
        return tuple(i for i in self.instants if not i.is_completed and i.action in actions)

    def savepoints(self) -> tuple[Instant, ...]:
        return self.completed((Action.SAVEPOINT,))

    def oldest_write(self) -> Instant | None:
        """The first write that is here, completed or not; older ones have been archived."""
        return next((one for one in self.instants if one.action.is_write), None)

    def first_write(self) -> Instant | None:
        """Where the active timeline starts: its first write, completed or not.

        A savepoint keeps its write from being archived while later ones are, so a savepointed
        write says nothing about its neighbours and does not count.
        """
        kept = {
            instant.requested for instant in self.instants if instant.action is Action.SAVEPOINT
        }
        writes = (i for i in self.instants if i.action.is_write and i.requested not in kept)
        return next(writes, None)

    def newest_time(self) -> str | None:
        """The newest time on the timeline, requested or of completion."""
        times = [instant.completed or instant.requested for instant in self.instants]
        return max([*times, *(i.requested for i in self.instants)], default=None)

    def files_of(self, instant: Instant) -> InstantFiles | None:
        """All files of an instant, whatever state the given value is in."""
        return self._by_key.get(instant.key)

    def path(self, instant: Instant) -> str:
        """Where the content of an instant in its state lies."""
        files = self.files_of(instant)
        file = None if files is None else files.in_state(instant.state)
        if file is None:
            raise InvalidRequest(
                "unknown_instant",
                what=f"The active timeline has no instant {instant}.",
                why="It may be archived or rolled back, or has moved to another state.",
                now="Load the timeline again.",
                instant=instant.requested,
            )
        return file.entry.path

    def read(self, instant: Instant) -> bytes:
        """The content of an instant in its state.

        A completed file that a crash cut short is as its ledger says it was to be: the instant was
        committed before the file was started. One that was archived since the timeline was loaded
        is read from the archive.
        """
        path = self.path(instant)
        known = self.contents.get(path)
        if known is not None:
            return known
        content = self._storage.read_if_present(path)
        if content is None:
            return self._read_archived(instant)
        self._keep(instant, path, content)
        if instant.is_completed and not _is_whole(content):
            last = read_ledger(self._storage, instant.requested).last_whole
            # A savepoint has the time of its write, but not its ledger.
            if isinstance(last, Committed) and last.action.completed_as is instant.action:
                return last.content
        return content

    def is_torn(self, instant: Instant) -> bool:
        """Whether the file of a completed instant was cut short by a crash."""
        path = self.path(instant)
        if self.contents.get(path) is not None:
            return False
        content = self._storage.read(path)
        self._keep(instant, path, content)
        return not _is_whole(content)

    def share_contents(self, contents: "Contents") -> None:
        """Read nothing again that earlier looks at the same timeline have read."""
        self.contents = contents

    def _keep(self, instant: Instant, path: str, content: bytes) -> None:
        # In layout 1 a file that is made anew may have the name of the one before.
        if instant.is_completed and is_whole_container(content):
            self.contents.keep(path, content)

    def _read_archived(self, instant: Instant) -> bytes:
        row = open_archive(self._storage, self.layout).read(instant)
        if row is None:
            # It was rolled back meanwhile, unless it is there by now.
            return self._storage.read(self.path(instant))
        return (row.metadata if instant.is_completed else row.plan) or b""


def load_active(
    storage: Storage, layout: Layout, earlier: ActiveTimeline | None = None
) -> ActiveTimeline:
    """The active timeline as it is now, from one listing of its folder.

    With an earlier look at the same folder, only what has changed since is looked at.
    """
    if earlier is None or earlier.layout != layout:
        return active_timeline(storage, layout, storage.list(layout.folder).files)
    known = earlier.settled
    entries = storage.list(layout.folder, known.entries).files
    if entries == earlier.entries and earlier.is_of(storage):
        return earlier
    settled = known.among(entries)
    if settled is not known and any(
        entry.path in known.entries for entry in settled.beside(entries)
    ):
        # What is left of an instant is looked at: it may be of another attempt at it by now.
        entries = storage.list(layout.folder).files
        settled = settled.among(entries)
    return active_timeline(storage, layout, entries, settled, earlier.contents)


def active_timeline(
    storage: Storage,
    layout: Layout,
    entries: Sequence[Entry],
    settled: CompletedFiles = NOTHING_SETTLED,
    contents: Contents | None = None,
) -> ActiveTimeline:
    """The active timeline that the files of its folder make; settled instants are among them."""
    groups = dict(settled.groups)
    states: dict[Key, dict[State, StateFile]] = {}
    unsettled = list(settled.beside(entries))
    if any(entry.name == MOVED for entry in unsettled):
        _refuse_moved(storage, layout)
    for entry in unsettled:
        instant = layout.parse(entry)
        if instant is None:
            continue
        key = instant.key
        known = states.get(key)
        if known is None:
            others = groups.get(key, ())
            known = states[key] = {file.instant.state: file for file in others}
        first = known.setdefault(instant.state, StateFile(instant, entry))
        if first.instant.completed != instant.completed:
            raise _two_completions(first.entry, entry)
    groups |= {key: InstantFiles(*map(states[key].get, State)) for key in states}
    if layout.version == 1:
        groups = {key: _told_apart(storage, files) for key, files in groups.items()}
    by_key = {key: groups[key] for key in sorted(groups)}
    if any(groups[key].completed or key in settled.groups for key in states):
        settled = CompletedFiles.of(layout, by_key)
    return ActiveTimeline(storage, layout, by_key, tuple(entries), settled, contents)


def _refuse_moved(storage: Storage, layout: Layout) -> None:
    """Refuse the rest of a timeline that moved, unless another engine has moved it back."""
    payload = storage.read_if_present(PROPERTIES_FILE)
    said = None if payload is None else parse_properties(payload, PROPERTIES_FILE)
    if said is None or layout_of(said).folder != layout.folder:
        raise Conflict(
            "snapshot_outdated",
            what="The table changed its version while Lakewarden took a snapshot of it.",
            why="Its timeline moved to the layout of the other version.",
            now="Nothing was read or written. Try again.",
        )


def _told_apart(storage: Storage, files: InstantFiles) -> InstantFiles:
    """A pending replace commit of layout 1: what it asks for tells whether it is a clustering."""
    asked = files.requested
    is_open = files.completed is None and asked is not None and asked.entry.size_bytes > 0
    if asked is None or not is_open or files.started_as is not Action.REPLACE_COMMIT:
        return files
    content = storage.read_if_present(asked.entry.path) or b""
    if not is_whole_container(content):
        return files
    plan = decode_requested(content, asked.entry.path).clustering_plan
    return files if plan is None else files.started_by(Action.CLUSTERING)


def _is_whole(content: bytes) -> bool:
    """Whether the file of a completed instant was written to its end, in either form."""
    return is_whole_object(content) or is_whole_container(content)


def _completion(instant: Instant) -> str:
    assert instant.completed is not None
    return instant.completed


def _two_completions(first: Entry, second: Entry) -> CorruptTable:
    return CorruptTable(
        "two_completions",
        what=f"{first.path} and {second.path} both complete one instant.",
        why="Two writers completed it, so it is uncertain which files belong to the table.",
        now="Compare the files that both name, and remove the one that does not match the data.",
        path=second.path,
        other=first.path,
    )


class Archive(Protocol):
    """Completed instants that have left the active timeline."""

    def instants(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """The instants requested from `since` to `until`, both included, in their order."""
        ...

    def completion_time(self, requested: str) -> str | None:
        """When an archived instant completed; None when it is not in the archive."""
        ...

    def read(self, instant: Instant) -> ArchivedInstant | None:
        """An instant with its contents; None when it is not in the archive."""
        ...

    def completed_after(self, time: str, moment_ms: int | None) -> tuple[Instant, ...]:
        """The instants completed after a time, which is that moment, in the order they began."""
        ...

    def rows(
        self, actions: Collection[Action], since: str | None = None, until: str | None = None
    ) -> Iterator[ArchivedInstant]:
        """Instants of some actions with their contents, newest first."""
        ...


class Timeline:
    """What is known of all instants of a table at one moment."""

    def __init__(self, active: ActiveTimeline, archive: Archive) -> None:
        self.active = active
        self.archive = archive
        first, oldest = active.first_write(), active.oldest_write()
        self._start = None if first is None else first.requested
        self._oldest = None if oldest is None else oldest.requested
        self._newest = max((one.requested for one in active.instants), default=None)
        # Where instants share a requested time, the write is the one that is asked for.
        known = [instant for instant in active.instants if instant.action is not Action.SAVEPOINT]
        known.sort(key=lambda instant: instant.action.is_write)
        self._completions = {instant.requested: instant.completed for instant in known}

    @classmethod
    def load(
        cls, storage: Storage, layout: Layout, earlier: ActiveTimeline | None = None
    ) -> "Timeline":
        """The timeline as it is now; costs one listing, the archive is not touched."""
        return cls(load_active(storage, layout, earlier), open_archive(storage, layout))

    @property
    def first_active(self) -> str | None:
        """The requested time at which the active timeline starts, savepointed writes aside."""
        return self._start

    def is_active_since(self, requested: str) -> bool:
        """Whether all that began at a time or later is active, as far as savepoints tell."""
        return self._start is not None and requested >= self._start

    def completion_time(self, requested: str) -> str | None:
        """When an instant completed; None while it is pending, and when it never was published.

        What is older than all active writes has completed, or its files would have been rolled
        back; if even the archive has forgotten it, its requested time stands for its completion.
        Of all else that is not active the archive tells: it may have gone beyond a savepoint, and
        what was rolled back or undone by a restore is not in it.
        """
        if requested in self._completions:
            return self._completions[requested]
        if not self._is_before_all(requested):
            return self._archived(requested)
        if self.active.layout.version == 1:
            # The archive of version 6 can only be read as a whole, and nothing there is ordered
            # by completion.
            return requested
        return self.archive.completion_time(requested) or requested

    def is_completed(self, requested: str) -> bool:
        """The same question without the time, which for most needs no archive."""
        if requested in self._completions:
            return self._completions[requested] is not None
        return self._is_before_all(requested) or self._archived(requested) is not None

    def instants(self) -> tuple[Instant, ...]:
        """All instants, archived and active; one that is in both counts as active."""
        found = {instant.key: instant for instant in self.archive.instants()}
        found.update({instant.key: instant for instant in self.active.instants})
        return tuple(found[key] for key in sorted(found))

    def writes_completed_after(self, time: str) -> tuple[Instant, ...]:
        """The writes completed after a time, archived and active, in the order they began.

        One that took long may be archived though it completed after the active timeline starts.
        """
        active = self.active.completed_between(time, None)
        found = {instant.key: instant for instant in active}
        moment_ms = epoch_ms(time, self.active.layout.zone)
        for instant in self.archive.completed_after(time, moment_ms):
            if instant.action in COMPLETED_WRITES:
                found.setdefault(instant.key, instant)
        return tuple(found[key] for key in sorted(found))

    def _is_before_all(self, requested: str) -> bool:
        return self._oldest is not None and requested < self._oldest

    def _archived(self, requested: str) -> str | None:
        """When an instant completed that is archived; nothing is as long as all is older."""
        if self._newest is not None and requested > self._newest:
            return None
        return self.archive.completion_time(requested)


def open_archive(storage: Storage, layout: Layout) -> Archive:
    """The archive that belongs to a layout."""
    if layout.version == 1:
        return LogArchive(storage, layout.history_folder)
    return LsmArchive(storage, layout.history_folder)


@dataclass(frozen=True, slots=True)
class Without:
    """What the timeline says of completions once some instants are no more."""

    timeline: Timeline
    gone: frozenset[str]

    def completion_time(self, requested: str) -> str | None:
        return None if requested in self.gone else self.timeline.completion_time(requested)

    def is_completed(self, requested: str) -> bool:
        return requested not in self.gone and self.timeline.is_completed(requested)
