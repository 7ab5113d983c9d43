"""A history: a kind of table and steps, played one after the other and checked after each."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.checks import Checks
from tests.histories.seen import Difference
from tests.histories.steps import Step, drawn_steps
from tests.histories.tables import TableKind
from tests.histories.world import World


@dataclass(frozen=True, slots=True)
class History:
    """What is played; its text is all that a replay needs."""

    kind: TableKind
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return " ".join([str(self.kind), *map(str, self.steps)])

    @classmethod
    def parse(cls, text: str) -> "History":
        kind, *steps = text.split()
        return cls(TableKind.parse(kind), tuple(map(Step.parse, steps)))

    @classmethod
    def drawn(cls, seed: int, *, without: frozenset[str] = frozenset()) -> "History":
        chance = Random(f"history {seed}")
        kind = TableKind.drawn(chance)
        return cls(kind, tuple(drawn_steps(chance, chance.randrange(18, 34), without=without)))

    def only(self, steps: tuple[Step, ...]) -> "History":
        return replace(self, steps=steps)


@dataclass(slots=True)
class Played:
    """What has come of a history."""

    history: History
    told: list[str] = field(default_factory=list)
    # The operations that were played, in their order.
    names: list[str] = field(default_factory=list)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused_past: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered_past: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    failure: str = ""
    # What two failures of the same cause by and large have in common.
    sort: str = ""


def play(history: History) -> Played:
    """Play all steps; a difference ends it, and so does any error that nobody has foreseen."""
    world = World(history.kind)
    checks = Checks(world)
    played = Played(history, told=world.played)
    try:
        for step in history.steps:
            played.names.append(step.name)
            if world.play(step) is None:
                played.names.pop()
                continue
            checks.after_step(Random(f"checks {step.seed}"))
        checks.at_end(Random("end"))
    except Exception as error:
        is_known = isinstance(error, Difference)
        code = getattr(error, "code", "")
        name = "" if is_known else f"{type(error).__name__} {code}: "
        played.failure = f"{name}{error}"
        played.sort = _sort(played.failure)
    played.refusals, played.deaths = world.refusals, world.deaths
    played.refused_past, played.answered_past = checks.refusals, checks.answered
    return played


def _sort(failure: str) -> str:
    """The first words of a failure, without what differs from history to history."""
    words = failure.replace("\n", " ").split()
    return " ".join(word for word in words[:6] if not any(letter.isdigit() for letter in word))
