"""Cancellations: the answer to a request to cancel an instant, as values."""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.rollback.execution import RolledBack
from lakewarden.engine.transaction.state.live_attempt import LiveAttempt
from lakewarden.engine.transaction.state.service import Service


class Ending(StrEnum):
    """What a request to cancel has come to."""

    CANCELLED = "cancelled"
    ALREADY_CANCELLED = "already_cancelled"
    ALREADY_COMMITTED = "already_committed"
    # Only where nothing is done in any case: else a refusal is an error.
    REFUSED = "refused"


class Cleanup(StrEnum):
    """What has become of the files of a cancelled instant, and of its place on the timeline."""

    DONE = "done"
    # A live attempt has not seen yet that it was cancelled; it removes what it has made.
    LEFT_TO_ATTEMPT = "left_to_attempt"
    # The next clean, the next write or the next cancel does it.
    DUE = "due"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cancellation(Shown):
    """The answer to a request to cancel; what it says of the outcome holds for good."""

    instant: str
    action: Action
    outcome: Ending
    message: str
    # None where there is nothing to clean up: the instant has completed, or stays.
    cleanup: Cleanup | None = None
    # Who had it in hand at the end of the call.
    held_by: LiveAttempt | None = None
    # When the instant has completed, if it has.
    completed: str | None = None
    rolled_back: RolledBack | None = None
    removed_files: int = 0
    reclaimed_bytes: int = 0
    # The partitions that the next plan of the service has to look at.
    handed_back: tuple[str, ...] = ()
    is_dry_run: bool = False

    def __str__(self) -> str:
        return self.message

    @property
    def service(self) -> Service | None:
        """The service whose plan it was, if it was one."""
        return Service.of(self.action)
