"""The metadata table: what it lists, what it knows of columns, and whether it is true."""

from lakewarden.procedures.metadata.metadata_table import (
    CreateMetadataTable,
    DeleteMetadataTable,
    InitMetadataTable,
    ShowMetadataColumnStatsOverlap,
    ShowMetadataTableColumnStats,
    ShowMetadataTableFiles,
    ShowMetadataTablePartitions,
    ShowMetadataTableStats,
    ValidateMetadataTableFiles,
)

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
