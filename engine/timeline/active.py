"""The active timeline: the instants whose files still lie in the timeline's folder.

Loaded with one listing; contents are read only when asked for.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.shown import Row, ShownRows, row_of
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Instant, State
from lakewarden.engine.timeline.instants.layouts import Layout
from lakewarden.engine.timeline.ledger.entries import Committed
from lakewarden.engine.timeline.ledger.ledger import read_ledger

# What a timeline remembers of contents: some operations read those of all instants once.
_KEPT_MAX = 64
_KEPT_BYTES_MAX = 1 << 20
# A savepoint has the time of the write it saves: pending or not, it says nothing of that write.
UNDER_WAY = frozenset(Action) - {Action.SAVEPOINT}


@dataclass(frozen=True, slots=True)
class StateFile:
    """One file of the timeline and the state of an instant it stands for."""

    instant: Instant
    entry: Entry


@dataclass(frozen=True, slots=True)
class InstantFiles:
    """The files of one instant, one for each state at most; at least one is there."""

    requested: StateFile | None
    inflight: StateFile | None
    completed: StateFile | None

    @property
    def instant(self) -> Instant:
        """The instant in its newest state."""
        *_, newest = self
        return newest.instant

    @property
    def started_as(self) -> Action:
        """The action it began as: a completed commit may have started as a compaction."""
        return next(iter(self)).instant.action

    def in_state(self, state: State) -> StateFile | None:
        return next((file for file in self if file.instant.state is state), None)

    def __iter__(self) -> Iterator[StateFile]:
        for file in (self.requested, self.inflight, self.completed):
            if file is not None:
                yield file


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

    def __init__(self, storage: Storage, layout: Layout, files: tuple[InstantFiles, ...]) -> None:
        self.layout = layout
        self.files = files
        self.instants = tuple(group.instant for group in files)
        self._storage = storage
        self._by_key = {group.instant.key: group for group in files}
        # Contents of completed instants that are whole, which never change again.
        self._contents = Contents()

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
        known = self._contents.get(path)
        if known is not None:
            return known
        content = self._storage.read_if_present(path)
        if content is None:
            return self._read_archived(instant)
        self._keep(instant, path, content)
        if instant.is_completed and self.layout.version > 1 and not is_whole_container(content):
            last = read_ledger(self._storage, instant.requested).last_whole
            # A savepoint has the time of its write, but not its ledger.
            if isinstance(last, Committed) and last.action.completed_as is instant.action:
                return last.content
        return content

    def is_torn(self, instant: Instant) -> bool:
        """Whether the file of a completed instant was cut short by a crash."""
        path = self.path(instant)
        if self._contents.get(path) is not None:
            return False
        content = self._storage.read(path)
        self._keep(instant, path, content)
        return not is_whole_container(content)

    def share_contents(self, contents: "Contents") -> None:
        """Read nothing again that earlier looks at the same timeline have read."""
        self._contents = contents

    def _keep(self, instant: Instant, path: str, content: bytes) -> None:
        if instant.is_completed and is_whole_container(content):
            self._contents.keep(path, content)

    def _read_archived(self, instant: Instant) -> bytes:
        row = None
        if self.layout.version > 1:
            row = LsmArchive(self._storage, self.layout.history_folder).read(instant)
        if row is None:
            # It was rolled back meanwhile, unless it is there by now.
            return self._storage.read(self.path(instant))
        return (row.metadata if instant.is_completed else row.plan) or b""


def load_active(storage: Storage, layout: Layout) -> ActiveTimeline:
    """The active timeline as it is now, from one listing of its folder."""
    return active_timeline(storage, layout, storage.list(layout.folder).files)


def active_timeline(storage: Storage, layout: Layout, entries: Sequence[Entry]) -> ActiveTimeline:
    """The active timeline that the files of its folder make."""
    states: dict[tuple[str, str], dict[State, StateFile]] = {}
    for entry in entries:
        instant = layout.parse(entry)
        if instant is None:
            continue
        known = states.setdefault(instant.key, {})
        earlier = known.setdefault(instant.state, StateFile(instant, entry))
        if earlier.instant.completed != instant.completed:
            raise _two_completions(earlier.entry, entry)
    groups = (InstantFiles(*(states[key].get(state) for state in State)) for key in sorted(states))
    return ActiveTimeline(storage, layout, tuple(groups))


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
