"""Campaigns: many histories, each drawn from its seed, played by several processes."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tests.histories.coverage import Coverage
from tests.histories.history import History, Played, play
from tests.histories.remembered import remembering
from tests.histories.shrink import shrunk

SEEDS_AT_ONCE = 10
# So many failures of one sort are made short; more of them tell nothing new.
REPORTED = 2


@dataclass(frozen=True, slots=True)
class Part:
    """What has come of some seeds."""

    coverage: Coverage
    failed: tuple[tuple[int, Played], ...]


def played_part(seeds: range, without: frozenset[str]) -> Part:
    """Play some seeds."""
    coverage, failed = Coverage(), []
    with remembering():
        for seed in seeds:
            played = play(History.drawn(seed, without=without))
            coverage.add(played)
            if played.failure:
                failed.append((seed, played))
    return Part(coverage, tuple(failed))


def campaign(
    seeds: range, *, jobs: int = 1, without: frozenset[str] = frozenset()
) -> Iterator[Part]:
    """Play seeds, part by part, in any order."""
    parts = [
        range(start, min(start + SEEDS_AT_ONCE, seeds.stop))
        for start in range(seeds.start, seeds.stop, SEEDS_AT_ONCE)
    ]
    if jobs == 1:
        yield from (played_part(part, without) for part in parts)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(played_part, parts, [without] * len(parts))


def reported(played: Played, seed: int | None = None) -> str:
    """A failure in words, as short as it can be, and the line that replays it."""
    short = played if seed is None else shrunk(played)
    head = f"# {short.history.kind}" + ("" if seed is None else f", seed {seed}")
    line = f"python -m tests.histories '{short.history}'"
    return "\n".join([head, *short.reported, short.failure, f"Replay it with: {line}"])
