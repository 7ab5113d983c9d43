"""The timeline: active instants, and behind them the archived ones, read only when needed."""

from collections.abc import Collection, Iterator
from typing import Protocol

from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.active import ActiveTimeline, load_active
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.version6 import LogArchive
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Instant, epoch_ms
from lakewarden.engine.timeline.instants.layouts import Layout


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
    def load(cls, storage: Storage, layout: Layout) -> "Timeline":
        """The timeline as it is now; costs one listing, the archive is not touched."""
        return cls(load_active(storage, layout), open_archive(storage, layout))

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
