"""Measures: one figure of ours each, beside what is required of it."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.machine import ForeignLoad

# Does its work once and says the seconds it took.
Clocked = Callable[[], float]

OURS = "Lakewarden"


@dataclass(frozen=True, slots=True)
class Rounds:
    """The seconds of every round, by contestant, and the cores that others used meanwhile."""

    seconds: Mapping[str, tuple[float, ...]]
    foreign_cores: float

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def only(self, *names: str) -> "Rounds":
        return Rounds({name: self.seconds[name] for name in names}, self.foreign_cores)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure has to reach, or not to exceed."""

    limit: float
    is_least: bool = False

    def allows(self, figure: float) -> bool:
        return figure >= self.limit if self.is_least else figure <= self.limit

    def __str__(self) -> str:
        return f"at {'least' if self.is_least else 'most'} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Measure:
    """What was done, the figure, and the rounds it comes from; `includes` says what was timed.

    A figure without a bound is reported only.
    """

    case: str
    figure: float
    unit: str
    bound: Bound | None
    includes: str
    rounds: Rounds

    @property
    def is_met(self) -> bool | None:
        return None if self.bound is None else self.bound.allows(self.figure)


def clocked(work: Callable[[], object]) -> Clocked:
    """Work of this process as something to measure."""

    def run() -> float:
        gc.collect()
        begin = time.perf_counter()
        # The result lives until the clock has stopped: freeing it is not part of the work.
        result = work()
        seconds = time.perf_counter() - begin
        del result
        return seconds

    return run


def in_turns(contestants: Mapping[str, Clocked], *, rounds: int = 5, warm_ups: int = 1) -> Rounds:
    """Measure all in turns, so that a busy minute of the machine meets everybody."""
    for _ in range(warm_ups):
        for contestant in contestants.values():
            contestant()
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    load = ForeignLoad()
    for _ in range(rounds):
        for name, contestant in contestants.items():
            taken[name].append(contestant())
    seconds = {name: tuple(own) for name, own in taken.items()}
    return Rounds(seconds, load.cores())


def faster(
    case: str,
    rounds: Rounds,
    peer: str,
    *,
    at_least: float | None,
    includes: str,
    ours: str = OURS,
) -> Measure:
    """How many times the peer's time is ours."""
    figure = rounds.median(peer) / rounds.median(ours)
    bound = None if at_least is None else Bound(at_least, is_least=True)
    unit = f"times as fast as {peer}"
    return Measure(case, figure, unit, bound, includes, rounds.only(ours, peer))


def near(
    case: str, rounds: Rounds, peer: str, *, at_most: float, includes: str, ours: str = OURS
) -> Measure:
    """How many times our time is the peer's."""
    figure = rounds.median(ours) / rounds.median(peer)
    unit = f"times the time of {peer}"
    return Measure(case, figure, unit, Bound(at_most), includes, rounds.only(ours, peer))


def within(
    case: str, rounds: Rounds, *, at_most_ms: float | None, includes: str, ours: str = OURS
) -> Measure:
    """Our time itself, in milliseconds."""
    bound = None if at_most_ms is None else Bound(at_most_ms)
    return Measure(case, rounds.median(ours) * 1000, "ms", bound, includes, rounds.only(ours))
