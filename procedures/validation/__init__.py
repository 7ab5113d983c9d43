"""Validation: is a table what it says it is?"""

from lakewarden.procedures.validation.repair_deduplicate import RepairDeduplicate
from lakewarden.procedures.validation.repairs import (
    RepairAddPartitionMeta,
    RepairCorruptedCleanFiles,
    RepairMigratePartitionMeta,
    RepairOverwriteHoodieProps,
)
from lakewarden.procedures.validation.validate_table import ValidateTable

__all__ = [
    "RepairAddPartitionMeta",
    "RepairCorruptedCleanFiles",
    "RepairDeduplicate",
    "RepairMigratePartitionMeta",
    "RepairOverwriteHoodieProps",
    "ValidateTable",
]
