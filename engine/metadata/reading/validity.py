"""Validity: which instants of the metadata table count for one snapshot of the data's timeline.

A deltacommit has the time of its instant on the data's timeline and counts if that one is completed
there. It completes before that instant does, which may never complete: its writer died, or paused
while others rolled the instant back. An instant that the timeline does not have is newer than the
snapshot if its time is later than all of the timeline, is completed if the archive has it, and was
rolled back otherwise. A compaction counts if everything that it has folded counts. Otherwise the
slice under it is read, as long as its files are there. What Java writes at the end of a restore has
a time of its own, at which no other instant can have started: it counts with that restore.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile
from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId
from lakewarden.engine.metadata.encoding.records import INITIAL_TOKEN, is_initial
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.removals import outdated
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline

_RESTORES = (Action.RESTORE,)


@dataclass(frozen=True, slots=True)
class Validity:
    """The completions of the metadata table's timeline, as far as a timeline of the data goes."""

    own: Timeline = field(repr=False)
    data: Timeline = field(repr=False)
    # The instants of the data's timeline, and whether each is completed.
    known: Mapping[str, bool] = field(repr=False)
    newest: str
    # Compactions and log compactions, which are made of others.
    services: frozenset[str]
    # Compactions that hold entries of what does not count yet.
    ahead: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: Timeline, own: Timeline) -> "Validity":
        known = _known(data.active)
        without = cls(own, data, known, max(known, default=""), _services(own.active))
        return replace(without, ahead=_ahead(without))

    def is_valid(self, instant: str) -> bool:
        """Whether what an instant wrote counts; a log compaction does as far as its sources do."""
        completed = self.known.get(instant)
        if completed is not None:
            return completed
        if instant in self.services or is_initial(instant) or self._is_of_restore(instant):
            return True
        return not self.is_later(instant) and self._is_archived(instant)

    def is_later(self, instant: str) -> bool:
        """Whether an instant completes, if it does, after the look at the data's timeline."""
        completed = self.known.get(instant)
        if completed is not None:
            return not completed
        is_reported = instant in self.services or self._is_of_restore(instant)
        return instant > self.newest and not is_reported

    def completion_time(self, requested: str) -> str | None:
        """When an instant completed; None while it does not count."""
        return self.own.completion_time(requested) if self._counts(requested) else None

    def is_completed(self, requested: str) -> bool:
        """The same question without the time."""
        return self._counts(requested) and self.own.is_completed(requested)

    def strays(self) -> tuple[str, ...]:
        """The deltacommits of instants that have left their timeline, and come back never."""
        return tuple(
            files.instant.requested
            for files in self.own.active.files
            if files.started_as is Action.DELTA_COMMIT
            and files.instant.requested not in self.known
            and not self.is_valid(files.instant.requested)
        )

    def check_whole(self, files: Sequence[DataFile], groups: Sequence[FileGroup]) -> None:
        """Refuse slices of which the beginning is gone, since a newer one took its place."""
        passed_over = {
            file.file_id
            for file in files
            if isinstance(file, BaseFile) and file.instant in self.ahead
        }
        if not passed_over:
            return
        whole = {group.key for group in groups if _is_whole(group)}
        partition = groups[0].key.partition if groups else ""
        if any(FileGroupId(partition, file_id) not in whole for file_id in passed_over):
            raise outdated("The metadata table was compacted and cleaned in the meantime.")

    def _counts(self, requested: str) -> bool:
        return requested not in self.ahead and self.is_valid(requested)

    def _is_of_restore(self, instant: str) -> bool:
        """Whether a restore was under way at that time, which has completed since."""
        return any(_was_under_way(one, instant) for one in self.data.active.completed(_RESTORES))

    def _is_archived(self, instant: str) -> bool:
        if self.data.active.layout.version == 1 or self.data.is_completed(instant):
            return True
        if self.data.archive.completion_time(instant) is not None:
            return True
        last = next((row.instant for row in self.data.archive.rows(_RESTORES, until=instant)), None)
        return last is not None and _was_under_way(last, instant)


def _was_under_way(restore: Instant, time: str) -> bool:
    return restore.requested < time <= (restore.completed or "")


def _known(active: ActiveTimeline) -> dict[str, bool]:
    """The instants and whether they are completed; a savepoint has the time of its write."""
    known: dict[str, bool] = {}
    for one in sorted(active.instants, key=lambda one: one.action.is_write):
        if one.action is not Action.SAVEPOINT:
            known[one.requested] = one.is_completed
    return known


def _services(own: ActiveTimeline) -> frozenset[str]:
    return frozenset(
        files.instant.requested
        for files in own.files
        if files.started_as is not Action.DELTA_COMMIT
    )


def _ahead(validity: Validity) -> frozenset[str]:
    """The compactions later than the completion of something that completes later for the data."""
    own = validity.own.active
    first = min(
        (
            one.completed
            for one in own.instants
            if one.completed and one.action.is_write and validity.is_later(one.requested)
        ),
        default=None,
    )
    if first is None:
        return frozenset()
    return frozenset(
        files.instant.requested
        for files in own.files
        if files.started_as is Action.COMPACTION and files.instant.requested > first
    )


def _is_whole(group: FileGroup) -> bool:
    """Whether the newest slice of a group begins with a base file or the group's first log."""
    newest = group.latest_merged()
    if newest.base_file is not None:
        return True
    logs: Sequence[LogFile] = newest.log_files
    return any(log.write_token == INITIAL_TOKEN for log in logs)
