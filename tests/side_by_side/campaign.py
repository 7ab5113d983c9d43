"""Campaigns of races: many seeds, played by several processes, whose figures add up."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from textwrap import fill

from tests.histories.coverage import PAGE_WIDTH
from tests.histories.remembered import remembering
from tests.side_by_side.race import Race, RaceKind

SEEDS_AT_ONCE = 20
BROKEN = "broken: "
_SUMMED = {"runs": "races", "steps": "steps"} | {
    name: name for name in ("switches", "pauses", "kills", "faults", "reads")
}


@dataclass(slots=True)
class Figures:
    """What races have come to: counts by their names."""

    tally: Counter[str] = field(default_factory=Counter)

    def add(self, race: Race) -> None:
        """Count one race in that has come to its end."""
        for name in race.scheduler.counts.__slots__:
            self.tally[name] += getattr(race.scheduler.counts, name)
        self.tally.update(race.figures())

    def save(self, path: Path) -> int:
        """Keep the figures with those that are there; how many races that are."""
        whole = load_figures(path).tally
        whole.update(self.tally)
        path.write_text(json.dumps(whole, indent=1, sort_keys=True))
        return whole["runs"]

    def page(self) -> str:
        """What docs/reliability.md says of all that was played."""
        by_name = {name: f"{self.tally[name]:,} {word}" for name, word in _SUMMED.items()}
        broken = sum(count for name, count in self.tally.items() if name.startswith(BROKEN))
        ends = sorted((name, count) for name, count in self.tally.items() if ": " in name)
        parts = [
            f"{', '.join(by_name.values())}; {broken} broken.",
            f"Reads that were answered: {self._counts('answered ')}.",
            f"Ends of calls: {' · '.join(f'{name} {count:,}' for name, count in ends)}.",
        ]
        return "\n\n".join(fill(part, PAGE_WIDTH, break_on_hyphens=False) for part in parts)

    def _counts(self, beginning: str) -> str:
        found = sorted(name for name in self.tally if name.startswith(beginning))
        return ", ".join(f"{name.removeprefix(beginning)} {self.tally[name]:,}" for name in found)

    def markdown(self) -> str:
        rows = [f"| {name} | {count:,} |" for name, count in sorted(self.tally.items())]
        return "\n".join(["| of races | |", "| --- | ---: |", *rows])


def load_figures(path: Path) -> Figures:
    """The figures that were saved so far."""
    return Figures(Counter(json.loads(path.read_text()) if path.exists() else {}))


@dataclass(frozen=True, slots=True)
class Broken:
    """A race in which a promise was broken."""

    seed: int
    sort: str
    reported: str


@dataclass(frozen=True, slots=True)
class Part:
    """What has come of some seeds."""

    figures: Figures
    broken: tuple[Broken, ...]


def played_part(kind: RaceKind, seeds: Sequence[int]) -> Part:
    """Play some seeds."""
    figures, broken = Figures(), []
    with remembering():
        for seed in seeds:
            race = Race(kind, seed)
            try:
                race.play()
            except BaseException as violation:
                if isinstance(violation, KeyboardInterrupt):
                    raise
                broken.append(_broken(race, seed, violation))
                figures.tally[f"{BROKEN}{broken[-1].sort}"] += 1
            figures.add(race)
    return Part(figures, tuple(broken))


def campaign(kind: RaceKind, seeds: range, *, jobs: int) -> Iterator[Part]:
    """Play seeds, part by part."""
    parts = [
        range(start, min(start + SEEDS_AT_ONCE, seeds.stop))
        for start in range(seeds.start, seeds.stop, SEEDS_AT_ONCE)
    ]
    play = partial(played_part, kind)
    if jobs == 1:
        yield from map(play, parts)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(play, parts)


def _broken(race: Race, seed: int, violation: BaseException) -> Broken:
    sort = getattr(violation, "sort", "") or type(violation).__name__
    head = f"seed {seed}, {race.table_kind}, lock {race.kind.lock}: {violation}"
    line = f"Replay it with: python -m tests.side_by_side --lock {race.kind.lock} --seed {seed}"
    return Broken(seed, sort, "\n".join([head, race.reported(), line]))
