"""The shape of a table service: it drafts plans and executes them; all else is shared."""

from typing import Protocol

from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.selection import Drafted
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.service import Service


class TableService(Protocol):
    """Compaction, log compaction or clustering."""

    @property
    def service(self) -> Service: ...

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none; writes nothing."""
        ...

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        """Make the files that a plan asks for, ready to be committed; any engine's plan will do.

        Asks `attempt.assert_mine()` between files, and tells how far it is.
        """
        ...
