"""Breadth-first exploration: the shortest way to a broken promise, or the number of states."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tests.model.instant_model import Rules, State, actions, broken_promise, left_behind

StateT = TypeVar("StateT", bound=Hashable)
Steps = list[tuple[str, StateT]]


@dataclass(frozen=True, slots=True)
class Explored:
    """What has come of it; the trace leads to what is wrong."""

    states: int
    wrong: str | None = None
    trace: tuple[str, ...] = ()


def explore(start: State, rules: Rules) -> Explored:
    """Look at every state of one instant that can be reached."""
    return explore_all(
        start,
        lambda state: actions(state, rules),
        lambda state, steps: broken_promise(state) or (None if steps else left_behind(state)),
    )


def explore_all(
    start: StateT,
    steps_from: Callable[[StateT], Iterable[tuple[str, StateT]]],
    wrong_in: Callable[[StateT, Steps[StateT]], str | None],
) -> Explored:
    """Look at every state that can be reached, and say what is wrong in the first such one."""
    came_from: dict[StateT, tuple[StateT, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        steps = list(steps_from(state))
        wrong = wrong_in(state, steps)
        if wrong is not None:
            return Explored(len(came_from), wrong, _trace(came_from, state))
        for name, after in steps:
            if after not in came_from:
                came_from[after] = state, name
                queue.append(after)
    return Explored(len(came_from))


def _trace(came_from: dict[StateT, tuple[StateT, str] | None], state: StateT) -> tuple[str, ...]:
    names: list[str] = []
    while (before := came_from[state]) is not None:
        state, name = before
        names.append(name)
    return tuple(reversed(names))
