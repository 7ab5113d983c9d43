"""The settings of beginning, ending and undoing instants: Hudi's own keys, and ours."""

from collections.abc import Callable
from enum import StrEnum

from lakewarden.engine.kernel.settings import Setting, Settings, one_of, whole_number
from lakewarden.engine.timeline.heartbeats import TOLERABLE_MISSES
from lakewarden.engine.timeline.next_time import SKEW_SECONDS_MAX
from lakewarden.engine.transaction.state.markers import MarkerType


class FailedWrites(StrEnum):
    """When failed writes of others are rolled back."""

    EAGER = "EAGER"
    """Roll them back before the next write: with one writer, every pending write has failed."""
    LAZY = "LAZY"
    """Roll back those whose heartbeat has expired: other writers may be running."""
    NEVER = "NEVER"
    """Leave them as they are."""


def _at_least(smallest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = whole_number(text)
        if number < smallest:
            raise ValueError(f"it must not be below {smallest}")
        return number

    return parse


FAILED_WRITES_POLICY: Setting[str] = Setting(
    "hoodie.clean.failed.writes.policy",
    "",
    one_of(*FailedWrites),
    (
        "When failed writes are rolled back: EAGER, LAZY or NEVER; when not set, LAZY where "
        "several writers are declared, and EAGER otherwise"
    ),
    ("hoodie.cleaner.policy.failed.writes",),
)
MARKERS_BOTH = "BOTH"
MARKERS_TYPE: Setting[str] = Setting(
    "hoodie.write.markers.type",
    "",
    one_of(*MarkerType, MARKERS_BOTH),
    (
        "How a write announces its files: DIRECT by a file for each, TIMELINE_SERVER_BASED by one "
        "list, as Java's timeline server does, BOTH for Java writers of either type; when not "
        "set, a single writer leaves the fewest files, several writers leave direct markers, and "
        "both with early conflict detection"
    ),
)
CONCURRENCY_MODE: Setting[str] = Setting(
    "hoodie.write.concurrency.mode",
    "SINGLE_WRITER",
    one_of("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    "Whether other writers may run at the same time",
)
HEARTBEAT_INTERVAL_MS: Setting[int] = Setting(
    "hoodie.client.heartbeat.interval_in_ms",
    60_000,
    _at_least(1_000),
    "How often an attempt writes its heartbeat; all writers of a table must agree on it",
)
HEARTBEAT_MISSES: Setting[int] = Setting(
    "hoodie.client.heartbeat.tolerable.misses",
    TOLERABLE_MISSES,
    _at_least(1),
    "After how many intervals without a heartbeat an attempt counts as dead",
)
TOUCH_MS: Setting[int] = Setting(
    "lakewarden.heartbeat.touch_ms",
    0,
    whole_number,
    (
        "How often the heartbeat that Java sees is touched, at most half of the shortest interval "
        "of the Java writers of the table; 0 for half of our own"
    ),
)
SKEW_MAX_SECONDS: Setting[int] = Setting(
    "lakewarden.clock.skew_max_seconds",
    SKEW_SECONDS_MAX,
    whole_number,
    "How far this machine's clock may be behind the newest time of the timeline",
)
SWEEP_DELAY_SECONDS: Setting[int] = Setting(
    "lakewarden.sweep.delay_seconds",
    3_600,
    whole_number,
    "How long after a rollback a paused writer may still leave files, which are removed then",
)
ROLLBACK_DELAY_MINUTES: Setting[int] = Setting(
    "lakewarden.table_service_rollback_delay",
    # A job that runs plans once a day has missed one before its plan is cancelled.
    2 * 24 * 60,
    whole_number,
    (
        "After how many minutes a clean with the LAZY policy cancels a cancellable plan that "
        "has not started; 0 cancels it at once"
    ),
    ("hoodie.table_service_rollback_delay", "table_service_rollback_delay"),
)
STORAGE_THREADS: Setting[int] = Setting(
    "lakewarden.storage.threads",
    16,
    _at_least(1),
    (
        "How many files are checked or deleted at the same time; these calls only wait for the "
        "storage"
    ),
)

PLAN_SETTINGS: tuple[Setting[object], ...] = (
    FAILED_WRITES_POLICY,
    CONCURRENCY_MODE,
    MARKERS_TYPE,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    TOUCH_MS,
    SKEW_MAX_SECONDS,
    SWEEP_DELAY_SECONDS,
    ROLLBACK_DELAY_MINUTES,
    STORAGE_THREADS,
)


def failed_writes_policy(settings: Settings) -> FailedWrites:
    """The policy that is set, or the one that fits the declared number of writers, as in Java."""
    named = settings[FAILED_WRITES_POLICY]
    if named:
        return FailedWrites(named)
    is_alone = settings[CONCURRENCY_MODE] == "SINGLE_WRITER"
    return FailedWrites.EAGER if is_alone else FailedWrites.LAZY


# A list is two files, however many it names.
_LISTED_FROM = 3


def marker_types(
    settings: Settings, files: int, *, has_rivals: bool = False
) -> frozenset[MarkerType]:
    """How a write announces so many files; 0 where it can't know their names in advance.

    Rivals are those that look for each other's markers, of which Java's may be of either type.
    """
    if not files:
        return frozenset({MarkerType.DIRECT})
    named = settings[MARKERS_TYPE]
    if named == MARKERS_BOTH or (has_rivals and not named):
        return frozenset(MarkerType)
    if named:
        return frozenset({MarkerType(named)})
    is_alone = settings[CONCURRENCY_MODE] == "SINGLE_WRITER"
    is_listed = is_alone and files >= _LISTED_FROM
    return frozenset({MarkerType.TIMELINE_SERVER_BASED if is_listed else MarkerType.DIRECT})
