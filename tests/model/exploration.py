"""Breadth-first exploration: the shortest way to a broken promise, or the number of states."""

from collections import deque
from dataclasses import dataclass

from tests.model.instant_model import (
    Rules,
    State,
    actions,
    broken_promise,
    left_behind,
)


@dataclass(frozen=True, slots=True)
class Explored:
    """What has come of it; the trace leads to what is wrong."""

    states: int
    wrong: str | None = None
    trace: tuple[str, ...] = ()


def explore(start: State, rules: Rules) -> Explored:
    """Look at every state that can be reached."""
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        following = list(actions(state, rules))
        wrong = broken_promise(state) or (None if following else left_behind(state))
        if wrong is not None:
            return Explored(len(came_from), wrong, _trace(came_from, state))
        for name, after in following:
            if after not in came_from:
                came_from[after] = state, name
                queue.append(after)
    return Explored(len(came_from))


def _trace(came_from: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    names: list[str] = []
    while (before := came_from[state]) is not None:
        state, name = before
        names.append(name)
    return tuple(reversed(names))
