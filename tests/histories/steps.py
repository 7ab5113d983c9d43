"""Steps of a history: an operation by its name, with a seed of its own for all that is drawn.

A step means as much as it can when others are skipped before it, so that histories shrink.
"""

from dataclasses import dataclass
from random import Random

from tests.histories.every_operation import OPERATIONS

DEATHS = 0.08
_ENDS = ("fail_before", "fail_after", "torn")


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `death` is the fault at which its process ends, if it does."""

    number: int
    name: str
    seed: int
    death: str = ""

    def __str__(self) -> str:
        name = self.name.replace(" ", "_")
        return ":".join([str(self.number), name, str(self.seed), self.death.replace(":", "=")])

    @classmethod
    def parse(cls, text: str) -> "Step":
        number, name, seed, death = text.split(":")
        name = next(known for known in OPERATIONS if known.replace(" ", "_") == name)
        return cls(int(number), name, int(seed), death.replace("=", ":"))


def drawn_steps(
    chance: Random,
    count: int,
    *,
    without: frozenset[str] = frozenset(),
    favoured: frozenset[str] = frozenset(),
) -> list[Step]:
    """So many steps, more of them by what is done more often, and by what is favoured."""
    names = [name for name in OPERATIONS if name not in without]
    weights = [OPERATIONS[name].weight * (8 if name in favoured else 1) for name in names]
    # A history leans to some operations, so that rare ones meet each other, too.
    leaning = [weight * chance.choice((1, 1, 1, 4)) for weight in weights]
    # Each operation has the same chance in some steps, or two rare ones would never meet.
    rare = chance.choices(names, k=count // 3)
    chosen = rare + chance.choices(names, leaning, k=count - 1 - len(rare))
    chance.shuffle(chosen)
    chosen = ["upsert", *chosen]
    return [
        Step(number, name, chance.getrandbits(32), _death(chance) if "death" not in without else "")
        for number, name in enumerate(chosen, 1)
    ]


def _death(chance: Random) -> str:
    if chance.random() >= DEATHS:
        return ""
    at = chance.randrange(1, chance.choice((20, 60, 150)))
    return f"{at}:{chance.choice(_ENDS)}!"
