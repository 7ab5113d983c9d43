"""Services: what keeps a table in shape, and what takes parts of it away."""

from lakewarden.procedures.services.clustering import RepairClusteringPlan, RunClustering
from lakewarden.procedures.services.compaction import RunCompaction, RunLogCompaction
from lakewarden.procedures.services.partitions import DropPartition, TruncateTable
from lakewarden.procedures.services.pending import (
    CleanupStaleInflightCommits,
    RunRollbackInflightTableservice,
    ShowInflightCommits,
    Sweep,
)
from lakewarden.procedures.services.run_indexing import RunIndexing
from lakewarden.procedures.services.run_metadata_maintenance import RunMetadataMaintenance
from lakewarden.procedures.services.tidying import (
    ArchiveCommits,
    RunClean,
    RunTimelineCompaction,
    RunTtl,
)

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
