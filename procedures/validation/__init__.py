"""Validation: is a table what it says it is?"""

from lakewarden.procedures.validation.repair_add_partition_meta import RepairAddPartitionMeta
from lakewarden.procedures.validation.repair_deduplicate import RepairDeduplicate
from lakewarden.procedures.validation.validate_table import ValidateTable

__all__ = ["RepairAddPartitionMeta", "RepairDeduplicate", "ValidateTable"]
