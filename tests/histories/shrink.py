"""Shrinking: the shortest history found that fails in the same way."""

from collections.abc import Iterator
from dataclasses import replace

from tests.histories.history import History, Played, play
from tests.histories.steps import Step

PLAYS_MAX = 150


def shrunk(failed: Played, *, plays: int = PLAYS_MAX) -> Played:
    """Leave out steps, many at a time and then one by one, and deaths, as long as it fails."""
    best, left = failed, plays
    changed = True
    while changed and left > 0:
        changed = False
        for candidate in _shorter(best):
            left -= 1
            played = play(candidate)
            if played.failure and played.sort == failed.sort:
                best, changed = played, True
                break
            if left <= 0:
                break
    return best


def _shorter(played: Played) -> Iterator[History]:
    history, steps = played.history, played.history.steps
    if played.steps < len(steps):
        yield history.only(steps[: played.steps])
    size = len(steps) // 2
    while size >= 1:
        for start in range(len(steps) - size, -1, -size):
            yield history.only((*steps[:start], *steps[start + size :]))
        size //= 2
    for place, step in enumerate(steps):
        if step.death:
            yield history.only(_with(steps, place, replace(step, death="")))
    for name in (
        "is_scattered",
        "is_partial",
        "has_metadata",
        "is_odd",
        "is_composite",
        "is_floating",
        "is_partitioned",
    ):
        kind = replace(history.kind, **{name: False})
        if getattr(history.kind, name) and kind.is_possible:
            yield replace(history, kind=kind)


def _with(steps: tuple[Step, ...], place: int, step: Step) -> tuple[Step, ...]:
    return (*steps[:place], step, *steps[place + 1 :])
