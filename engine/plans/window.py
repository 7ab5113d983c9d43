"""The incremental window: which partitions a new plan of a service has to look at."""

from dataclasses import dataclass

from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import Moment
from lakewarden.engine.plans.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The partitions to plan for, and where they come from."""

    # None means all partitions of the table.
    partitions: tuple[str, ...] | None
    # The requested time of the service's last completed plan: where the window begins.
    since: str | None = None
    # In a sentence: since when, or why all partitions are looked at.
    why: str
    # What is touched since, what the last plan left out, and what cancelled plans have left.
    touched: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    handed_back: tuple[str, ...] = ()


def find_window(context: Context, moment: Moment, service: Service) -> Window:
    """The window of a service at a moment."""
    return Window(partitions=None, why="All partitions are looked at.")
