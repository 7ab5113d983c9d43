"""What planners make of a window: a refusal where it is empty, and choices that are cut to it."""

from collections.abc import Collection

from lakewarden.engine.services.planning.selection import Reason, Refusal, Selection
from lakewarden.engine.transaction.state.service import Service
from lakewarden.engine.transaction.window.window import Window


def untouched(service: Service, window: Window) -> Refusal | None:
    """Why there is no plan where nothing has changed since the last one."""
    if window.partitions != ():
        return None
    return Refusal(
        service=service,
        reason=Reason.UNTOUCHED,
        why=f"There is nothing new to take. {window.why}",
    )


def within(selection: Selection[str], names: Collection[str]) -> Selection[str]:
    """What a choice among all partitions says of some of them.

    A place in the order of partitions is the same whatever a window shows of them.
    """
    kept = frozenset(names)
    return Selection(
        tuple(name for name in selection.chosen if name in kept),
        tuple(one for one in selection.skipped if one.partition in kept),
    )
