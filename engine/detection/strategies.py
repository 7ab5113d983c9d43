"""Strategies of early conflict detection, by the names that Hudi and its RFC give them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, flag, whole_number
from lakewarden.engine.transaction.state.markers import MarkerType
from lakewarden.engine.transaction.state.settings import CONCURRENCY_MODE, MARKERS_TYPE


class Strategy(StrEnum):
    """How a write finds those that it would conflict with, and which of two gives way."""

    SIMPLE = "simple"
    """The younger instant gives way; direct markers."""
    TRANSACTIONAL = "transactional"
    """Who has announced its file groups first stays: a write looks and announces in one lock."""
    BLOOM = "bloom"
    """As simple; a bloom filter is asked first."""
    ASYNC = "async"
    """As simple, looking as often as the detector is set to; markers in few files."""
    BLOOM_ASYNC = "bloom_async"
    """As async; a bloom filter is asked first."""

    @property
    def has_bloom(self) -> bool:
        return self in (Strategy.BLOOM, Strategy.BLOOM_ASYNC)

    @property
    def is_async(self) -> bool:
        return self in (Strategy.ASYNC, Strategy.BLOOM_ASYNC)


# Of a class name only these words tell one strategy from the other.
_SAYS_NOTHING = ("early", "conflict", "detection", "strategy", "markers", "marker", "based")
_SAYS_NOTHING_EITHER = ("server", "direct", "timeline", "_")
_NAMED = {
    "simple": Strategy.SIMPLE,
    "simpletransaction": Strategy.TRANSACTIONAL,
    "transaction": Strategy.TRANSACTIONAL,
    "transactional": Strategy.TRANSACTIONAL,
    "async": Strategy.ASYNC,
    "bloom": Strategy.BLOOM,
    "bloomasync": Strategy.BLOOM_ASYNC,
}


def _strategy(text: str) -> Strategy:
    name = text.strip().rpartition(".")[2].lower()
    for word in (*_SAYS_NOTHING, *_SAYS_NOTHING_EITHER):
        name = name.replace(word, "")
    if name not in _NAMED:
        raise ValueError(f"it must be one of {', '.join(Strategy)}, or a class of Hudi's")
    return _NAMED[name]


DETECTION: Setting[bool] = Setting(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    False,
    flag,
    (
        "Whether a write that is going to lose to another one stops before its first file; needs "
        "OPTIMISTIC_CONCURRENCY_CONTROL"
    ),
    ("hoodie.write.lock.early.conflict.detection.enable",),
)
STRATEGY: Setting[Strategy | None] = Setting(
    "hoodie.write.concurrency.early.conflict.detection.strategy",
    None,
    _strategy,
    (
        "Which of two writes gives way: with transactional who announces its file groups second, "
        "with simple, bloom, async and bloom_async the younger instant; classes of Hudi are known; "
        f"when not set, async where {MARKERS_TYPE.key} is {MarkerType.TIMELINE_SERVER_BASED}, as "
        "in Java, and simple otherwise"
    ),
    ("hoodie.write.lock.early.conflict.detection.strategy",),
)
INITIAL_DELAY_MS: Setting[int] = Setting(
    "hoodie.write.concurrency.async.conflict.detector.initial_delay_ms",
    0,
    whole_number,
    (
        "With an async strategy: after how long a write looks for the second time, 0 for a period; "
        "for the first time it looks before its first file"
    ),
    ("hoodie.write.lock.early.conflict.async.checker.batch.interval",),
)
PERIOD_MS: Setting[int] = Setting(
    "hoodie.write.concurrency.async.conflict.detector.period_ms",
    1_000,
    whole_number,
    "With an async strategy: how often a write looks; others look once a second",
    ("hoodie.write.lock.early.conflict.async.checker.period",),
)
CHECKS_COMMITS: Setting[bool] = Setting(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict",
    True,
    flag,
    "Whether detection also looks for writes that have completed meanwhile",
    ("hoodie.write.lock.early.conflict.check.commit",),
)
WAIT_SECONDS: Setting[int] = Setting(
    "lakewarden.early_conflict.wait_seconds",
    3_600,
    whole_number,
    (
        "How long a write that gave way and is to be retried waits at most until the other one "
        "has ended"
    ),
)
DETECTION_SETTINGS: tuple[Setting[object], ...] = (
    DETECTION,
    STRATEGY,
    INITIAL_DELAY_MS,
    PERIOD_MS,
    CHECKS_COMMITS,
    WAIT_SECONDS,
)

_LOOKS_EVERY_SECONDS = 1.0
_OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRules:
    """What is set about detection, for a write that takes part."""

    strategy: Strategy
    checks_commits: bool = True
    initial_delay_seconds: float = _LOOKS_EVERY_SECONDS
    period_seconds: float = _LOOKS_EVERY_SECONDS


def detection_rules(settings: Settings) -> DetectionRules | None:
    """The rules that are set; None where detection is off."""
    if not settings[DETECTION]:
        return None
    refuse_without_several_writers(settings)
    strategy, checks_commits = strategy_of(settings), settings[CHECKS_COMMITS]
    if not strategy.is_async:
        return DetectionRules(strategy=strategy, checks_commits=checks_commits)
    period_ms = settings[PERIOD_MS]
    return DetectionRules(
        strategy=strategy,
        checks_commits=checks_commits,
        initial_delay_seconds=(settings[INITIAL_DELAY_MS] or period_ms) / 1000,
        period_seconds=period_ms / 1000,
    )


def strategy_of(settings: Settings) -> Strategy:
    """The strategy that is set, or the one that goes with the type of the markers, as in Java."""
    is_listed = settings[MARKERS_TYPE] == MarkerType.TIMELINE_SERVER_BASED
    return settings[STRATEGY] or (Strategy.ASYNC if is_listed else Strategy.SIMPLE)


def refuse_without_several_writers(settings: Settings) -> None:
    """As Java does: a single writer has no rivals, and writers that don't block have no conflicts.

    Of Java's modes only the optimistic one has commits that fail.
    """
    mode = settings[CONCURRENCY_MODE]
    if settings[DETECTION] and mode != _OPTIMISTIC:
        raise InvalidRequest(
            "detection_without_rivals",
            what=f"Early conflict detection does not work with {CONCURRENCY_MODE.key}={mode}.",
            why="Only writers under optimistic concurrency control conflict with each other.",
            now=f"Set {CONCURRENCY_MODE.key}={_OPTIMISTIC}, or leave {DETECTION.key} out.",
            mode=mode,
        )


# What is worth something else when it is not set, because of others.
DERIVED: dict[str, Callable[[Settings], object]] = {STRATEGY.key: strategy_of}
# What is wrong with a setting only because of others.
CHECKS: dict[str, Callable[[Settings], None]] = {DETECTION.key: refuse_without_several_writers}
