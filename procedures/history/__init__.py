"""History: what has become of a table, instant by instant."""

from lakewarden.procedures.history.archived_commits import (
    ShowArchivedCommits,
    ShowArchivedCommitsMetadata,
)
from lakewarden.procedures.history.cleans import ShowCleanPlans, ShowCleans, ShowCleansMetadata
from lakewarden.procedures.history.commits import (
    CommitsCompare,
    ShowCommitExtraMetadata,
    ShowCommitFiles,
    ShowCommitPartitions,
    ShowCommits,
    ShowCommitsMetadata,
    ShowCommitWriteStats,
)
from lakewarden.procedures.history.rewrites import ShowClustering, ShowCompaction
from lakewarden.procedures.history.rollbacks import ShowRollbackDetail, ShowRollbacks
from lakewarden.procedures.history.timeline import ExportInstants, ShowRetention, ShowTimeline

__all__ = [
    "CommitsCompare",
    "ExportInstants",
    "ShowArchivedCommits",
    "ShowArchivedCommitsMetadata",
    "ShowCleanPlans",
    "ShowCleans",
    "ShowCleansMetadata",
    "ShowClustering",
    "ShowCommitExtraMetadata",
    "ShowCommitFiles",
    "ShowCommitPartitions",
    "ShowCommitWriteStats",
    "ShowCommits",
    "ShowCommitsMetadata",
    "ShowCompaction",
    "ShowRetention",
    "ShowRollbackDetail",
    "ShowRollbacks",
    "ShowTimeline",
]
