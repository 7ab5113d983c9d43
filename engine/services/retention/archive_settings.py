"""The settings of archiving: Hudi's own keys, with its defaults."""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, flag, positive_number
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
