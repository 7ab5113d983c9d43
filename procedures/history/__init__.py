"""History: what has become of a table, instant by instant."""

from lakewarden.procedures.history.commits_compare import CommitsCompare
from lakewarden.procedures.history.export_instants import ExportInstants
from lakewarden.procedures.history.show_archived_commits import ShowArchivedCommits
from lakewarden.procedures.history.show_archived_commits_metadata import ShowArchivedCommitsMetadata
from lakewarden.procedures.history.show_clean_plans import ShowCleanPlans
from lakewarden.procedures.history.show_cleans import ShowCleans
from lakewarden.procedures.history.show_cleans_metadata import ShowCleansMetadata
from lakewarden.procedures.history.show_clustering import ShowClustering
from lakewarden.procedures.history.show_commit_extra_metadata import ShowCommitExtraMetadata
from lakewarden.procedures.history.show_commit_files import ShowCommitFiles
from lakewarden.procedures.history.show_commit_partitions import ShowCommitPartitions
from lakewarden.procedures.history.show_commit_write_stats import ShowCommitWriteStats
from lakewarden.procedures.history.show_commits import ShowCommits
from lakewarden.procedures.history.show_commits_metadata import ShowCommitsMetadata
from lakewarden.procedures.history.show_compaction import ShowCompaction
from lakewarden.procedures.history.show_retention import ShowRetention
from lakewarden.procedures.history.show_rollback_detail import ShowRollbackDetail
from lakewarden.procedures.history.show_rollbacks import ShowRollbacks
from lakewarden.procedures.history.show_timeline import ShowTimeline

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
