"""Sizes: how large files shall become, and how many bytes a row will take in one."""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.kernel.settings import Origin, Setting, Settings, flag, whole_number
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline


def _at_least_one(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


SMALL_FILE_LIMIT = Setting(
    "hoodie.parquet.small.file.limit",
    100 << 20,
    whole_number,
    "Base files of fewer bytes take in new rows; 0 puts new rows into new files only",
)
MAX_FILE_SIZE = Setting(
    "hoodie.parquet.max.file.size",
    120 << 20,
    _at_least_one,
    "The target size of base files, in bytes",
)
RECORD_SIZE = Setting(
    "hoodie.copyonwrite.record.size.estimate",
    1024,
    _at_least_one,
    "Bytes of a row in a file, where no earlier write tells",
)
AUTO_SPLIT = Setting(
    "hoodie.copyonwrite.insert.auto.split",
    True,
    flag,
    "Whether the size of rows says how many of them go into a new file",
)
INSERT_SPLIT = Setting(
    "hoodie.copyonwrite.insert.split.size",
    500_000,
    _at_least_one,
    "Rows in a new file where their size does not say",
)
REWRITE_RATIO = Setting(
    "lakewarden.write.small_file_rewrite_ratio",
    4.0,
    float,
    (
        "On merge-on-read tables, how many times the bytes of new rows a small file may have to "
        "take them in; otherwise they get a new file"
    ),
)
INSERTS_TO_LOGS = Setting(
    "lakewarden.write.inserts_to_logs",
    False,
    flag,
    (
        "On merge-on-read tables with a record index, whether logs of small file groups take in "
        "new rows. For tables that no writer looks for keys in base files of"
    ),
)
SIZE_SETTINGS: tuple[Setting[object], ...] = (
    SMALL_FILE_LIMIT,
    MAX_FILE_SIZE,
    RECORD_SIZE,
    AUTO_SPLIT,
    INSERT_SPLIT,
    REWRITE_RATIO,
    INSERTS_TO_LOGS,
)

# Writes that are asked how large their rows came out.
_WRITES_ASKED = 5
# What encoding and compression leave of a row's bytes in memory, roughly.
_PACKED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """What files shall look like after a write."""

    record_bytes: int
    small_file_bytes: int = SMALL_FILE_LIMIT.default
    max_file_bytes: int = MAX_FILE_SIZE.default
    # Rows of a new file; None lets their size decide.
    split_rows: int | None = None
    # None where every base file that takes in rows is rewritten anyway sooner or later.
    rewrite_ratio: float | None = None
    # Logs take in new rows, which rewrites nothing.
    logs_take_rows: bool = False

    @property
    def rows_per_file(self) -> int:
        if self.split_rows is not None:
            return self.split_rows
        return max(self.max_file_bytes // self.record_bytes, 1)

    def bytes_of(self, row_count: int) -> int:
        return row_count * self.record_bytes


# For a write that brings no new rows.
UNLIMITED = SizeLimits(record_bytes=1)


def size_limits(settings: Settings, table_type: TableType, record_bytes: int) -> SizeLimits:
    """The limits that settings ask for; small files of copy-on-write tables take what fits."""
    is_merge_on_read = table_type is TableType.MERGE_ON_READ
    return SizeLimits(
        record_bytes=max(record_bytes, 1),
        small_file_bytes=settings[SMALL_FILE_LIMIT],
        max_file_bytes=settings[MAX_FILE_SIZE],
        split_rows=None if settings[AUTO_SPLIT] else settings[INSERT_SPLIT],
        rewrite_ratio=settings[REWRITE_RATIO] if is_merge_on_read else None,
    )


def record_bytes(
    active: ActiveTimeline, settings: Settings, rows: KeyedRows, *, unpacked_bytes: int = 0
) -> int:
    """Bytes that a row takes in a file: as earlier writes show, as set, or as measured.

    Without earlier writes Hudi takes its default of 1 KB, which for narrow rows makes many tiny
    files. So without a setting the rows are measured, here or by the workers that hold them.
    """
    known = known_record_bytes(active, settings)
    if known is not None:
        return known
    if not len(rows):
        return RECORD_SIZE.default
    unpacked_bytes = unpacked_bytes or rows.rows.nbytes + rows.keys.nbytes
    return measured_record_bytes(unpacked_bytes, row_count=len(rows))


def known_record_bytes(active: ActiveTimeline, settings: Settings) -> int | None:
    """Bytes that a row takes in a file, as earlier writes tell, or as set; None without either."""
    earlier = average_record_bytes(active)
    if earlier is not None:
        return earlier
    resolved = settings.resolve(RECORD_SIZE)
    return None if resolved.origin is Origin.DEFAULT else max(resolved.value, 1)


def measured_record_bytes(unpacked_bytes: int, *, row_count: int) -> int:
    """Bytes that a row will take in a file, by what rows take in memory."""
    return max(round(unpacked_bytes * _PACKED_SHARE / row_count), 1)


def average_record_bytes(active: ActiveTimeline) -> int | None:
    """Bytes per row in the base files that the newest writes made; None if they tell nothing.

    Replace commits don't count: clustering leaves smaller rows than a write does.
    """
    total_bytes = total_rows = 0
    newest = active.completed((Action.COMMIT, Action.DELTA_COMMIT))[-_WRITES_ASKED:]
    for instant in newest:
        told = commit.summary(active.read(instant), active.path(instant))
        total_bytes, total_rows = total_bytes + told.telling_bytes, total_rows + told.telling_rows
    return -(-total_bytes // total_rows) if total_rows else None
