"""Services: what keeps a table in shape, and what takes parts of it away."""

from lakewarden.procedures.services.archive_commits import ArchiveCommits
from lakewarden.procedures.services.cleanup_stale_inflight_commits import (
    CleanupStaleInflightCommits,
)
from lakewarden.procedures.services.drop_partition import DropPartition
from lakewarden.procedures.services.repair_clustering_plan import RepairClusteringPlan
from lakewarden.procedures.services.run_clean import RunClean
from lakewarden.procedures.services.run_clustering import RunClustering
from lakewarden.procedures.services.run_compaction import RunCompaction
from lakewarden.procedures.services.run_indexing import RunIndexing
from lakewarden.procedures.services.run_log_compaction import RunLogCompaction
from lakewarden.procedures.services.run_metadata_maintenance import RunMetadataMaintenance
from lakewarden.procedures.services.run_rollback_inflight_tableservice import (
    RunRollbackInflightTableservice,
)
from lakewarden.procedures.services.run_timeline_compaction import RunTimelineCompaction
from lakewarden.procedures.services.run_ttl import RunTtl
from lakewarden.procedures.services.show_inflight_commits import ShowInflightCommits
from lakewarden.procedures.services.sweep import Sweep
from lakewarden.procedures.services.truncate_table import TruncateTable

__all__ = [
    "ArchiveCommits",
    "CleanupStaleInflightCommits",
    "DropPartition",
    "RepairClusteringPlan",
    "RunClean",
    "RunClustering",
    "RunCompaction",
    "RunIndexing",
    "RunLogCompaction",
    "RunMetadataMaintenance",
    "RunRollbackInflightTableservice",
    "RunTimelineCompaction",
    "RunTtl",
    "ShowInflightCommits",
    "Sweep",
    "TruncateTable",
]
