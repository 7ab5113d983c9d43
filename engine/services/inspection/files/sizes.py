"""Sizes of files: their spread by the write that has made them, and how much is written again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import floor
from statistics import fmean, stdev

from lakewarden.engine.services.inspection.history.history import History
from lakewarden.engine.services.inspection.history.writes import decode_write, figures_of_write
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES


@dataclass(frozen=True, slots=True)
class Spread:
    """The sizes of some files in bytes, sorted."""

    sizes: tuple[int, ...]

    @property
    def average(self) -> float:
        return fmean(self.sizes)

    @property
    def deviation(self) -> float:
        """The standard deviation, as of a sample."""
        return stdev(self.sizes) if len(self.sizes) > 1 else 0.0

    def quantile(self, share: float) -> float:
        """The size that a share of the files does not exceed, between two files if need be."""
        position = share * (len(self.sizes) + 1)
        if position < 1:
            return float(self.sizes[0])
        if position >= len(self.sizes):
            return float(self.sizes[-1])
        lower, upper = self.sizes[floor(position) - 1], self.sizes[floor(position)]
        return lower + (position - floor(position)) * (upper - lower)


@dataclass(frozen=True, slots=True)
class Amplification:
    """How many rows a write has updated, and how many it had to write for that."""

    records_updated: int
    records_written: int

    @property
    def factor(self) -> float | None:
        return self.records_written / self.records_updated if self.records_updated else None


def spreads(state: Snapshot, pattern: str = "") -> Iterator[tuple[str | None, Spread]]:
    """The spread over all files, then by write, newest first; nothing where there are no files.

    A pattern is as a shell's, and chooses partitions.
    """
    source = state.source(use_metadata=True)
    chosen = None
    if pattern:
        chosen = tuple(one for one in source.partitions() if fnmatchcase(one, pattern))
    by_instant: dict[str, list[int]] = {}
    for files in source.files(chosen).values():
        for file in files:
            by_instant.setdefault(file.instant, []).append(file.size_bytes)
    if by_instant:
        yield None, _spread([size for sizes in by_instant.values() for size in sizes])
    for instant in sorted(by_instant, reverse=True):
        yield instant, _spread(by_instant[instant])


def amplifications(history: History) -> Iterator[tuple[str | None, Amplification]]:
    """The amplification of all active writes together, then of each, newest first."""
    each = [
        (recorded.instant.requested, figures_of_write(decode_write(recorded)))
        for recorded in history.completed(COMPLETED_WRITES)
    ]
    if each:
        yield (
            None,
            Amplification(
                sum(one.records_updated for _, one in each),
                sum(one.records_written for _, one in each),
            ),
        )
    for instant, figures in each:
        yield instant, Amplification(figures.records_updated, figures.records_written)


def _spread(sizes: Sequence[int]) -> Spread:
    return Spread(tuple(sorted(sizes)))
