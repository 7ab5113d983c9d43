"""Changes: what the metadata table has to learn from one action on the data table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Statistics of one column in one data file.

    Bounds are scalars of the column's Arrow type, null scalars where all values are null, and None
    where no value was seen at all. A column with a NaN has NaN as its maximum, and as its minimum
    only when it has nothing else: NaN is the largest number to Spark.
    """

    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    value_count: int
    null_count: int
    # Zero for log files, as Java writes it.
    packed_bytes: int = 0
    unpacked_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """A bloom filter by the text that footers and the metadata table have of it."""

    text: str
    type_code: str


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file that came into being: base file or log file."""

    partition: str
    name: str
    size_bytes: int
    # By column: all indexed columns that the file has; empty for a base file without rows.
    columns: Mapping[str, ColumnSummary] = field(default_factory=dict)
    # Of a base file: the filter of its record keys, if an index wants it.
    key_filter: StoredFilter | None = None
    # By expression index: statistics of its values; none for a log that only deletes.
    expressions: Mapping[str, ColumnSummary] = field(default_factory=dict)
    # Of a base file, by expression index: the filter of its values.
    expression_filters: Mapping[str, StoredFilter] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Record keys that now live in a file group, and were not there before."""

    keys: pa.StringArray
    home: FileGroupId
    # The write that brought them; None for the one that the change is of.
    instant: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Removed:
    """Record keys that a partition of the table does not have any more."""

    keys: pa.StringArray
    partition: str


@dataclass(frozen=True, slots=True, eq=False)
class ValueChange:
    """What a secondary index has to learn: values, as Java's text, with the keys of their rows."""

    partition: str
    values: pa.StringArray
    keys: pa.StringArray
    gone_values: pa.StringArray
    gone_keys: pa.StringArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What one action did, in the words of the metadata table's partitions."""

    instant: str
    new_files: tuple[NewFile, ...] = ()
    # Partition -> names of files that are gone (clean, rollback).
    deleted_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Partitions that exist no more.
    deleted_partitions: tuple[str, ...] = ()
    located: tuple[Located, ...] = ()
    removed: tuple[Removed, ...] = ()
    # What is put counts, wherever else it is gone.
    valued: tuple[ValueChange, ...] = ()
    # Touched partition -> names of all files of its latest slices once the action has completed,
    # from which `partition_stats` are aggregated anew.
    live_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Partitions that the action knew nothing of when it gathered: it has nothing to say to them.
    unknown: frozenset[str] = frozenset()
