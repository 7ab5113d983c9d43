"""What an archival has come to: what left the active timeline, and what the rest waits for."""

from dataclasses import dataclass

from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.retention.archive_plan import Barrier
from lakewarden.engine.timeline.instants.instant import Instant


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Archived(Shown):
    """The answer of an archival; it is true when something was archived, or would be."""

    instants: tuple[Instant, ...] = ()
    # The oldest write that stays active, and what keeps it there.
    oldest_kept: Instant | None = None
    held: Barrier | None = None
    files_deleted: int = 0
    # Instants that an earlier archival had written before it was cut short.
    found_archived: int = 0
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return bool(self.instants)

    def __str__(self) -> str:
        if self.why_nothing is not None:
            return f"Nothing was archived: {self.why_nothing}"
        verb = "would be" if self.is_dry_run else "were"
        newest = max(instant.requested for instant in self.instants)
        return f"{len(self.instants)} instants up to {newest} {verb} archived"

    @property
    def why_nothing(self) -> str | None:
        """In a sentence, why no instant was archived; None if some were."""
        if self.instants:
            return None
        return "There is nothing to archive." if self.held is None else self.held.why


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TimelineCompacted(Shown):
    """What a compaction of the archive has come to, in files of archived instants."""

    files_before: int
    files_after: int
    # The version of the archive's manifest that is current now.
    version: int
    # When it began, as a time of the timeline, and how long it took.
    started: str = ""
    milliseconds: int = 0
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return self.files_after != self.files_before
