"""One measured comparison: our time beside a peer's for the same work."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A case with both times; `ratio` is the peer's time over ours, `required` what we want."""

    case: str
    ours_seconds: float
    peer: str
    peer_seconds: float
    ratio: float
    required: str
    includes: str


def median_seconds(function: Callable[[], object], runs: int = 5) -> float:
    """The median time of some runs."""
    return statistics.median(_seconds(function) for _ in range(runs))


def _seconds(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin
