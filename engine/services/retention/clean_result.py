"""What a clean has come to: what is gone, or why nothing was done and what holds it back."""

from dataclasses import dataclass

from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.retention.clean_plan import Kept
from lakewarden.engine.transaction.recovery.failed_writes import Recovered
from lakewarden.engine.transaction.sweep.sweep import Swept


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A clean that has completed; this call started it, or resumed a pending one."""

    instant: str
    completed: str
    files_deleted: int
    bytes_deleted: int
    partitions: tuple[str, ...]
    partitions_deleted: tuple[str, ...] = ()
    # None where versions were counted.
    earliest_retained: str | None = None
    milliseconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cleaned(Shown):
    """The answer of a clean; it is true when something was cleaned, or would be in a dry run."""

    # Without an instant nothing was to be done, or it was a dry run.
    instant: str | None = None
    completed: str | None = None
    files_deleted: int = 0
    bytes_deleted: int = 0
    # The partitions with files that went, and those that went as a whole.
    partitions: tuple[str, ...] = ()
    partitions_deleted: tuple[str, ...] = ()
    earliest_retained: str | None = None
    milliseconds: int = 0
    # What is old and stays, each with the instant that holds it back.
    kept: tuple[Kept, ...] = ()
    # In sentences: where it looked, and why there was nothing to do.
    scope: str = ""
    why_nothing: str | None = None
    # The instant without which more would have been cleaned.
    held_by: str | None = None
    is_dry_run: bool = False
    # What was put in order first: cleans that others had started, failed work, and late files.
    finished: tuple[Finished, ...] = ()
    settled: tuple[Recovered, ...] = ()
    swept: tuple[Swept, ...] = ()
    # Markers, heartbeats and ledgers of ended instants.
    remains_deleted: int = 0

    def __bool__(self) -> bool:
        return self.why_nothing is None

    def __str__(self) -> str:
        if self.why_nothing is not None:
            return f"Nothing was cleaned: {self.why_nothing}"
        extent = f"{self.files_deleted} files, {self.bytes_deleted} bytes"
        places = f"in {len(self.partitions)} partitions"
        held = "" if self.held_by is None else f"; {self.held_by} holds back more"
        if self.is_dry_run:
            return f"A clean would remove {extent}, {places}{held}"
        return f"clean {self.instant}: removed {extent}, {places}{held}"
