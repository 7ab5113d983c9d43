"""The settings of archiving: Hudi's own keys, with its defaults.

The settings of cleaning: Hudi's own keys, with its defaults and older spellings.
"""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import (
    Origin,
    Setting,
    Settings,
    flag,
    one_of,
    positive_number,
    whole_number,
)
from lakewarden.engine.services.retention.archive_plan import ArchiveLimits
from lakewarden.engine.timeline.archived.writer import LsmLimits

ARCHIVE_AUTOMATIC = Setting(
    "hoodie.archive.automatic",
    False,
    flag,
    "Whether a write archives after its commit; Hudi's writers do by default",
)
ARCHIVE_ASYNC = Setting(
    "hoodie.archive.async",
    False,
    flag,
    "Whether archiving is left to a job of its own, so that writes do not archive",
)
KEEP_MIN_COMMITS: Setting[int] = Setting(
    "hoodie.keep.min.commits",
    20,
    positive_number,
    "How many commits stay on the active timeline when others are archived",
)
KEEP_MAX_COMMITS: Setting[int] = Setting(
    "hoodie.keep.max.commits",
    30,
    positive_number,
    "With how many commits on the active timeline nothing is archived yet",
)
ARCHIVAL_BATCH: Setting[int] = Setting(
    "hoodie.commits.archival.batch",
    10,
    positive_number,
    "How much of a backlog is archived under one lock: 100 times as many instants, as one file",
)
BEYOND_SAVEPOINT = Setting(
    "hoodie.archive.beyond.savepoint",
    False,
    flag,
    "Whether commits that are newer than a savepoint may be archived before it is deleted",
)
MERGED_FILES: Setting[int] = Setting(
    "hoodie.timeline.compaction.batch.size",
    10,
    positive_number,
    "How many files of archived instants are merged into one",
)
MERGED_BYTES: Setting[int] = Setting(
    "hoodie.timeline.compaction.target.file.max.bytes",
    1000 * 1024 * 1024,
    positive_number,
    "How large a file of archived instants may be to be merged with others",
)
KEPT_MANIFESTS: Setting[int] = Setting(
    "hoodie.timeline.manifest.retained.versions",
    3,
    positive_number,
    "How many states of the archive stay readable for readers that started with them",
)

ARCHIVE_SETTINGS: tuple[Setting[object], ...] = (
    ARCHIVE_AUTOMATIC,
    ARCHIVE_ASYNC,
    KEEP_MIN_COMMITS,
    KEEP_MAX_COMMITS,
    ARCHIVAL_BATCH,
    BEYOND_SAVEPOINT,
    MERGED_FILES,
    MERGED_BYTES,
    KEPT_MANIFESTS,
)
_BATCHES_PER_FILE = 100


def limits_of(settings: Settings) -> ArchiveLimits:
    """How many commits stay active; a pair that contradicts itself is refused."""
    fewest, most = settings[KEEP_MIN_COMMITS], settings[KEEP_MAX_COMMITS]
    if fewest >= most:
        raise InvalidRequest(
            "wrong_limits",
            what=f"{KEEP_MIN_COMMITS.key}={fewest} contradicts {KEEP_MAX_COMMITS.key}={most}.",
            why="Archiving starts above the maximum and leaves the minimum.",
            now=f"Set {KEEP_MAX_COMMITS.key} to {fewest + 1} or more.",
            fewest=fewest,
            most=most,
        )
    return ArchiveLimits(fewest, most, goes_beyond_savepoints=settings[BEYOND_SAVEPOINT])


def lsm_limits(settings: Settings) -> LsmLimits:
    """When files of the archive are merged."""
    return LsmLimits(settings[MERGED_FILES], settings[MERGED_BYTES], settings[KEPT_MANIFESTS])


def instants_at_once(settings: Settings) -> int:
    """How many instants go into one file, so that a backlog needs bounded memory."""
    return settings[ARCHIVAL_BATCH] * _BATCHES_PER_FILE


def _positive(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise ValueError("it must be above zero")
    return number


CLEAN_AUTOMATIC = Setting(
    "hoodie.clean.automatic",
    False,
    flag,
    "Whether a write cleans after its commit; Hudi's writers do by default",
)
CLEAN_ASYNC = Setting(
    "hoodie.clean.async.enabled",
    False,
    flag,
    "Whether cleaning is left to a job of its own, so that writes do not clean",
    ("hoodie.clean.async",),
)
CLEAN_POLICY: Setting[str] = Setting(
    "hoodie.clean.policy",
    "",
    one_of(*CleanPolicy),
    "What a clean keeps; when not set, the policy whose number is set, and KEEP_LATEST_COMMITS "
    "otherwise",
    ("hoodie.cleaner.policy",),
)
COMMITS_RETAINED: Setting[int] = Setting(
    "hoodie.clean.commits.retained",
    10,
    _positive,
    "How many of the newest commits stay readable as they were, with KEEP_LATEST_COMMITS",
    ("hoodie.cleaner.commits.retained",),
)
HOURS_RETAINED: Setting[int] = Setting(
    "hoodie.clean.hours.retained",
    24,
    _positive,
    "For how many hours commits stay readable as they were, with KEEP_LATEST_BY_HOURS",
    ("hoodie.cleaner.hours.retained",),
)
VERSIONS_RETAINED: Setting[int] = Setting(
    "hoodie.clean.fileversions.retained",
    3,
    _positive,
    "How many of the newest slices of each file group stay, with KEEP_LATEST_FILE_VERSIONS",
    ("hoodie.cleaner.fileversions.retained",),
)
TRIGGER_STRATEGY: Setting[str] = Setting(
    "hoodie.clean.trigger.strategy",
    "NUM_COMMITS",
    one_of("NUM_COMMITS"),
    "What triggers a clean after a write: a number of commits since the last clean",
)
TRIGGER_COMMITS: Setting[int] = Setting(
    "hoodie.clean.trigger.max.commits",
    1,
    _positive,
    "After how many commits since the last clean a write cleans again",
    ("hoodie.clean.max.commits",),
)
IS_INCREMENTAL = Setting(
    "hoodie.clean.incremental.enabled",
    True,
    flag,
    "Whether a clean looks only at partitions that were written to since the last one",
    ("hoodie.cleaner.incremental.mode",),
)
# Zero stands for no limit: a clean of no commits makes no sense.
COMMITS_TO_CLEAN: Setting[int] = Setting(
    "hoodie.clean.max.commits.to.clean",
    0,
    whole_number,
    "The most commits that one clean covers; 0 for no limit",
)
BUILD_WAIT_SECONDS = Setting(
    "lakewarden.clean.build_wait_seconds",
    3_600,
    whole_number,
    "For how long a build of an index holds back cleans; what it misses then, it reads anew",
)

CLEAN_SETTINGS: tuple[Setting[object], ...] = (
    CLEAN_AUTOMATIC,
    CLEAN_ASYNC,
    CLEAN_POLICY,
    COMMITS_RETAINED,
    HOURS_RETAINED,
    VERSIONS_RETAINED,
    TRIGGER_STRATEGY,
    TRIGGER_COMMITS,
    IS_INCREMENTAL,
    COMMITS_TO_CLEAN,
    BUILD_WAIT_SECONDS,
)

_BY_NUMBER = {
    COMMITS_RETAINED: CleanPolicy.KEEP_LATEST_COMMITS,
    HOURS_RETAINED: CleanPolicy.KEEP_LATEST_BY_HOURS,
    VERSIONS_RETAINED: CleanPolicy.KEEP_LATEST_FILE_VERSIONS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRetention:
    """What a clean keeps; only the number of its policy matters."""

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits: int = COMMITS_RETAINED.default
    hours: int = HOURS_RETAINED.default
    versions: int = VERSIONS_RETAINED.default
    build_wait_seconds: int = BUILD_WAIT_SECONDS.default


def retention_of(settings: Settings) -> CleanRetention:
    """What is set; a pair that would have commits archived before they are cleaned is refused."""
    retention = CleanRetention(
        policy=_policy(settings),
        commits=settings[COMMITS_RETAINED],
        hours=settings[HOURS_RETAINED],
        versions=settings[VERSIONS_RETAINED],
        build_wait_seconds=settings[BUILD_WAIT_SECONDS],
    )
    by_commits = retention.policy is CleanPolicy.KEEP_LATEST_COMMITS
    if by_commits and retention.commits >= settings[KEEP_MIN_COMMITS]:
        raise _wrong_pair(settings)
    return retention


def _policy(settings: Settings) -> CleanPolicy:
    """As in Java: the one that is named, or the one whose number alone is set."""
    named = settings[CLEAN_POLICY]
    if named:
        return CleanPolicy(named)
    given = [
        policy
        for number, policy in _BY_NUMBER.items()
        if settings.resolve(number).origin is not Origin.DEFAULT
    ]
    return given[0] if len(given) == 1 else CleanPolicy.KEEP_LATEST_COMMITS


def _wrong_pair(settings: Settings) -> InvalidRequest:
    retained, kept = settings.resolve(COMMITS_RETAINED), settings.resolve(KEEP_MIN_COMMITS)
    return InvalidRequest(
        "wrong_retention",
        what=(
            f"{retained.key}={retained.value} ({retained.origin}) contradicts "
            f"{kept.key}={kept.value} ({kept.origin})."
        ),
        why=(
            "Commits stay on the active timeline until a clean has passed them, so it must "
            "keep more than a clean retains."
        ),
        now=f"Set {kept.key} to {retained.value + 1} or more, or {retained.key} below it.",
        retained=retained.value,
        kept=kept.value,
    )
