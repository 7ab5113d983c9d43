"""Tables: what has been said about a table, what holds for it, and copies of its rows."""

from lakewarden.procedures.tables.copies import CopyToTable, CopyToTempView
from lakewarden.procedures.tables.table_settings import ShowConfig, ShowTableProperties
from lakewarden.procedures.tables.versions import DowngradeTable, UpgradeTable

__all__ = [
    "CopyToTable",
    "CopyToTempView",
    "DowngradeTable",
    "ShowConfig",
    "ShowTableProperties",
    "UpgradeTable",
]
