"""The shape of a table service: it drafts plans and carries them out; all else is shared."""

from typing import Protocol

from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.commit import Outcome
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.service import Service
from lakewarden.engine.services.choice import Drafted
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot


class TableService(Protocol):
    """Compaction, log compaction or clustering."""

    @property
    def service(self) -> Service: ...

    def draft(self, context: Context, moment: Snapshot, wish: Wish) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none; writes nothing."""
        ...

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        """Make the files that a plan asks for, ready to be committed; any engine's plan will do.

        Asks `attempt.assert_mine()` between files, and tells how far it is.
        """
        ...
