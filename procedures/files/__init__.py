"""Files: which belong to the table, what is in them, and what has become of them."""

from lakewarden.procedures.files.file_figures import StatsFileSizes, StatsWa
from lakewarden.procedures.files.file_status import (
    ShowFileStatus,
    ShowFsPathDetail,
    ShowInvalidParquet,
)
from lakewarden.procedures.files.fsview import ShowFsviewAll, ShowFsviewLatest
from lakewarden.procedures.files.log_files import ShowLogfileMetadata, ShowLogfileRecords

__all__ = [
    "ShowFileStatus",
    "ShowFsPathDetail",
    "ShowFsviewAll",
    "ShowFsviewLatest",
    "ShowInvalidParquet",
    "ShowLogfileMetadata",
    "ShowLogfileRecords",
    "StatsFileSizes",
    "StatsWa",
]
