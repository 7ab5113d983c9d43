"""A history: a kind of table and steps, played one after the other and checked after each."""

import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.histories.checks import Checks
from tests.histories.played_table import PlayedTable
from tests.histories.seen import Difference
from tests.histories.steps import Step, drawn_steps
from tests.histories.tables import TableKind


@dataclass(frozen=True, slots=True)
class History:
    """What is played; its text is all that a replay needs."""

    kind: TableKind
    steps: tuple[Step, ...]
    # Operations and checks that take no part.
    without: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return " ".join([str(self.kind), *map(str, self.steps)])

    @classmethod
    def parse(cls, text: str) -> "History":
        kind, *steps = text.split()
        return cls(TableKind.parse(kind), tuple(map(Step.parse, steps)))

    @classmethod
    def drawn(
        cls,
        seed: int,
        *,
        without: frozenset[str] = frozenset(),
        favoured: frozenset[str] = frozenset(),
    ) -> "History":
        chance = Random(f"history {seed}")
        kind = TableKind.drawn(chance)
        steps = drawn_steps(chance, chance.randrange(19, 33), without=without, favoured=favoured)
        return cls(kind, tuple(steps), without)

    def only(self, steps: tuple[Step, ...]) -> "History":
        return replace(self, steps=steps)


@dataclass(slots=True)
class Played:
    """What has come of a history."""

    history: History
    reported: list[str] = field(default_factory=list)
    # The operations that were played, in their order.
    names: list[str] = field(default_factory=list)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused_past: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered_past: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    # How many of the steps were needed until it failed.
    steps: int = 0
    failure: str = ""
    # What two failures of the same cause by and large have in common.
    sort: str = ""


def play(history: History) -> Played:
    """Play all steps; a difference ends it, and so does any error that nobody has predicted."""
    world = PlayedTable(history.kind)
    checks = Checks(world, history.without)
    played = Played(history, reported=world.played)
    try:
        for step in history.steps:
            played.steps += 1
            played.names.append(step.name)
            if world.play(step) is None:
                played.names.pop()
                continue
            checks.after_step(Random(f"checks {step.seed}"))
        checks.at_end(Random("end"))
    except Exception as error:
        code = getattr(error, "code", "")
        name = f"{type(error).__name__} {code}".strip()
        played.sort = error.sort if isinstance(error, Difference) else f"{name} {_place(error)}"
        played.failure = f"{played.sort}: {error}"
    played.refusals, played.deaths = world.refusals, world.deaths
    played.refused_past, played.answered_past = checks.refusals, checks.answered
    return played


def _place(error: BaseException) -> str:
    """Where in the engine an error comes from that nobody has predicted."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].name}"
