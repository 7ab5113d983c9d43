"""Files: which belong to the table, what is in them, and what has become of them."""

from lakewarden.procedures.files.show_file_status import ShowFileStatus
from lakewarden.procedures.files.show_fsview_all import ShowFsviewAll
from lakewarden.procedures.files.show_fsview_latest import ShowFsviewLatest
from lakewarden.procedures.files.show_invalid_parquet import ShowInvalidParquet
from lakewarden.procedures.files.show_logfile_metadata import ShowLogfileMetadata
from lakewarden.procedures.files.show_logfile_records import ShowLogfileRecords
from lakewarden.procedures.files.stats_file_sizes import StatsFileSizes
from lakewarden.procedures.files.stats_wa import StatsWa

__all__ = [
    "ShowFileStatus",
    "ShowFsviewAll",
    "ShowFsviewLatest",
    "ShowInvalidParquet",
    "ShowLogfileMetadata",
    "ShowLogfileRecords",
    "StatsFileSizes",
    "StatsWa",
]
