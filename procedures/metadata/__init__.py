"""The metadata table: what it lists, what it knows of columns, and whether it is true."""

from lakewarden.procedures.metadata.create_metadata_table import CreateMetadataTable
from lakewarden.procedures.metadata.delete_metadata_table import DeleteMetadataTable
from lakewarden.procedures.metadata.init_metadata_table import InitMetadataTable
from lakewarden.procedures.metadata.show_metadata_column_stats_overlap import (
    ShowMetadataColumnStatsOverlap,
)
from lakewarden.procedures.metadata.show_metadata_table_column_stats import (
    ShowMetadataTableColumnStats,
)
from lakewarden.procedures.metadata.show_metadata_table_files import ShowMetadataTableFiles
from lakewarden.procedures.metadata.show_metadata_table_partitions import (
    ShowMetadataTablePartitions,
)
from lakewarden.procedures.metadata.show_metadata_table_stats import ShowMetadataTableStats
from lakewarden.procedures.metadata.validate_metadata_table_files import ValidateMetadataTableFiles

__all__ = [
    "CreateMetadataTable",
    "DeleteMetadataTable",
    "InitMetadataTable",
    "ShowMetadataColumnStatsOverlap",
    "ShowMetadataTableColumnStats",
    "ShowMetadataTableFiles",
    "ShowMetadataTablePartitions",
    "ShowMetadataTableStats",
    "ValidateMetadataTableFiles",
]
