"""The settings of the metadata table's own services: Hudi's own keys and defaults."""

import math

from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.settings import Setting, Settings, flag
from lakewarden.engine.metadata.writing.upkeep import UPKEEP_SETTINGS
from lakewarden.engine.services.retention.archive_plan import ArchiveLimits
from lakewarden.engine.services.retention.archive_settings import limits_of
from lakewarden.engine.services.retention.clean_settings import CleanRetention, retention_of

CLEANS_LIKE_TABLE = Setting(
    "hoodie.metadata.derive.from.datatable.clean.policy",
    True,
    flag,
    "Whether the metadata table keeps its past as the table does, a little longer; otherwise two "
    "slices of each of its file groups stay",
)
METADATA_SERVICE_SETTINGS: tuple[Setting[object], ...] = (*UPKEEP_SETTINGS, CLEANS_LIKE_TABLE)

# By Hudi's reckoning: so much longer than the table, and as many commits in any case.
_LONGER = 1.2
_COMMITS_MIN = 20
_VERSIONS_OTHERWISE = 2


def metadata_retention(settings: Settings) -> CleanRetention:
    """What a clean of the metadata table keeps."""
    if not settings[CLEANS_LIKE_TABLE]:
        policy = CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        return CleanRetention(policy=policy, versions=_VERSIONS_OTHERWISE)
    table = retention_of(settings)
    return CleanRetention(
        policy=table.policy,
        commits=max(_COMMITS_MIN, int(table.commits * _LONGER)),
        hours=math.ceil(table.hours * _LONGER),
        versions=math.ceil(table.versions * _LONGER),
    )


def metadata_limits(settings: Settings) -> ArchiveLimits:
    """How much of the metadata table's timeline stays active: a write more than of its table's."""
    limits = limits_of(settings)
    return ArchiveLimits(
        limits.keep_min + 1,
        limits.keep_max + 1,
        goes_beyond_savepoints=limits.goes_beyond_savepoints,
    )
