"""What planners make of a window: a refusal where it is empty, and choices that are cut to it."""

from collections.abc import Collection

from lakewarden.engine.plans.service import Service
from lakewarden.engine.plans.window import Window
from lakewarden.engine.services.choice import Choice, Reason, Refusal


def untouched(service: Service, window: Window) -> Refusal | None:
    """Why there is no plan where nothing has changed since the last one."""
    if window.partitions != ():
        return None
    return Refusal(
        service=service,
        reason=Reason.UNTOUCHED,
        why=f"There is nothing new to take. {window.why}",
    )


def within(choice: Choice[str], names: Collection[str]) -> Choice[str]:
    """What a choice among all partitions says of some of them.

    A place in the order of partitions is the same whatever a window shows of them.
    """
    kept = frozenset(names)
    return Choice(
        tuple(name for name in choice.chosen if name in kept),
        tuple(one for one in choice.left_out if one.partition in kept),
    )
