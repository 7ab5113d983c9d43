"""What the metadata table's services have come to, each with what was done or why nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.shown import Shown


class MetadataService(StrEnum):
    """The services of the metadata table, in the order in which they run."""

    CLEAN = "clean"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceBlocker:
    """A pending instant of the table that a service waits for."""

    instant: str
    action: str
    age_seconds: int | None
    # Who works on it, and what can be done about it.
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MetadataStep(Shown):
    """The answer of one service; it is true when something was done, or would be."""

    service: MetadataService
    is_done: bool = False
    # Its instant on the metadata table's timeline; an archival has none, and a dry run neither.
    instant: str | None = None
    # Why nothing was done, in a sentence.
    why_nothing: str | None = None
    blocker: MaintenanceBlocker | None = None
    # File groups compacted, files deleted, or instants archived.
    items: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return self.is_done

    def __str__(self) -> str:
        if not self.is_done:
            return f"{self.service}: nothing, {self.why_nothing}"
        return f"{self.service} {self.instant or ''}".rstrip() + f": {self.items} items"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MetadataMaintenance(Shown):
    """The answers of all services that were asked for."""

    steps: tuple[MetadataStep, ...] = ()
    # Instants of dead writers, which were executed or rolled back first.
    settled: tuple[str, ...] = ()
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return any(self.steps) or bool(self.settled)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    @property
    def by_service(self) -> Mapping[MetadataService, MetadataStep]:
        return {step.service: step for step in self.steps}
