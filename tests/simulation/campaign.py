"""Campaigns: many runs of one scenario, each with a seed of its own.

How many there are all in all says LAKEWARDEN_SEEDS; where it is not set, a day has some of them.
With LAKEWARDEN_SEED there is that one only, and all of its steps are shown.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.sampling import sample
from tests.simulation.scheduler import Counts, Step, Violation

SEEDS = int(os.environ.get("LAKEWARDEN_SEEDS", "2000"))
CHOSEN = os.environ.get("LAKEWARDEN_SEED")
SEEDS_PER_TEST = 500
EVERY = 3
TAIL = 60
PROPERTY = "simulated "


class Play(Protocol):
    """One run, ready to be made."""

    def play(self) -> Counts: ...

    @property
    def trace(self) -> list[Step]: ...


@dataclass(frozen=True, slots=True)
class Campaign:
    """Some seeds of one scenario."""

    name: str
    start: Callable[[int], Play]
    seeds: Sequence[int]

    def __str__(self) -> str:
        return f"{self.name}-{self.seeds[0]}"

    def run(self, record: Callable[[str, object], None]) -> None:
        """Make all runs, and record the figures for whoever adds them up."""
        counts = Counts()
        for seed in self.seeds:
            counts.add(self._one(seed))
        for name in Counts.__slots__:
            record(PROPERTY + name, getattr(counts, name))

    def _one(self, seed: int) -> Counts:
        run = self.start(seed)
        try:
            counts = run.play()
        except BaseException as broken:
            steps = run.trace if CHOSEN else run.trace[-TAIL:]
            line = f"LAKEWARDEN_SEED={seed} pytest -n0 tests/simulation -k {self.name}-"
            reported = "\n".join(map(str, [*steps, repr(broken), "Replay it with", line]))
            raise Violation(reported) from broken
        if CHOSEN:
            print(*run.trace, sep="\n")
        return counts


def campaigns(name: str, start: Callable[[int], Play], seeds: int) -> list[Campaign]:
    """The seeds of a scenario in parts that take a while each, but not for ever."""
    if CHOSEN is not None:
        return [Campaign(name, start, range(int(CHOSEN), int(CHOSEN) + 1))]
    starts = range(0, seeds, SEEDS_PER_TEST)
    parts = [range(first, min(first + SEEDS_PER_TEST, seeds)) for first in starts]
    return [Campaign(name, start, sample(part, EVERY)) for part in parts]
