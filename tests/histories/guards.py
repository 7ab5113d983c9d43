"""Guards removed, one at a time: `python -m tests.histories.guards` plays until the net is red.

A guard is a function of the engine that keeps a promise. It is exchanged for one that does
nothing, which happens here and in no test that says whether the table is right.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from tests.histories.history import History, play
from tests.side_by_side.race import Race, RaceKind
from tests.simulation.scheduler import Violation

HISTORIES, RACES = 400, 2_000


@dataclass(frozen=True, slots=True)
class Guard:
    """A function by its place, and what stands in for it."""

    name: str
    # Where it is used, as `module:function`: the name is looked up there.
    places: tuple[str, ...]
    instead: Callable[..., object]
    # The net that has to find its absence: histories, or races.
    in_races: bool = False

    @contextmanager
    def removed(self) -> Iterator[None]:
        """The engine without it."""
        found = [
            (import_module(one.partition(":")[0]), one.partition(":")[2]) for one in self.places
        ]
        own = [getattr(module, function) for module, function in found]
        for module, function in found:
            setattr(module, function, self.instead)
        try:
            yield
        finally:
            for (module, function), kept in zip(found, own, strict=True):
                setattr(module, function, kept)


def _nothing(*arguments: object, **keywords: object) -> None:
    pass


def _none(*arguments: object, **keywords: object) -> tuple[object, ...]:
    return ()


GUARDS = (
    Guard(
        "a key that was deleted in one file group is not written to it",
        ("lakewarden.engine.write.plan:without_dead",),
        lambda state, rows, matches, executor: matches,
    ),
    Guard(
        "time travel before what a clean has kept is refused",
        ("lakewarden.engine.read.plan_query:check_retained",),
        _nothing,
    ),
    Guard(
        "a restore is refused where files are gone",
        ("lakewarden.engine.services.restore.run:obstacles",),
        _none,
    ),
    Guard(
        "a write is taken back only while nothing is built on it",
        ("lakewarden.engine.plans.rollback:assert_may_be_taken_back",),
        _nothing,
    ),
    Guard(
        "files of savepoints and pending plans are not cleaned",
        (
            "lakewarden.engine.services.clean.draft:held_files",
            "lakewarden.engine.services.clean.carry_out:held_files",
        ),
        lambda active: {},
    ),
    Guard(
        "whoever commits second to a file group gives way",
        ("lakewarden.engine.plans.commit:find_conflicts",),
        _none,
        in_races=True,
    ),
)


def found_after(guard: Guard, at_most: int | None = None) -> int | None:
    """How many histories or races it takes until one fails without the guard."""
    limit = at_most or (RACES if guard.in_races else HISTORIES)
    with guard.removed():
        for seed in range(limit):
            if _fails(guard, seed):
                return seed + 1
    return None


def _fails(guard: Guard, seed: int) -> bool:
    if not guard.in_races:
        return bool(play(History.drawn(seed)).failure)
    try:
        Race(RaceKind(), seed).play()
    except Violation:
        return True
    return False


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.histories.guards")
    parser.add_argument("words", nargs="?", default="", help="a part of a guard's name")
    arguments = parser.parse_args()
    missed = 0
    print("| guard | found after |", "| --- | --- |", sep="\n")
    for guard in GUARDS:
        if arguments.words in guard.name:
            count = found_after(guard)
            missed += count is None
            kind = "races" if guard.in_races else "histories"
            print(f"| {guard.name} | {count or 'not found'} {kind} |", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
