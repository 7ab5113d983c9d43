"""Writing tables to measure on, with Lakewarden's own writers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import PROPERTIES_PATH
from lakewarden.engine.table.schema import META_COLUMNS, SCHEMA_KEY
from lakewarden.engine.timeline.instants.instant import (
    Action,
    Instant,
    State,
    create_instant,
    layout_of,
)

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
WRITE_TOKEN = "0-0-0"
# Java makes one or two row groups of some 120 MB a file.
ROW_GROUP_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Write:
    """When a write was requested and when it completes."""

    requested: str
    completed: str


def write_at(minute: int, *, second: int = 0) -> Write:
    """A write of ten seconds, so and so long after midnight of the first day."""
    moment = FIRST_DAY + timedelta(minutes=minute, seconds=second)
    return Write(_time(moment), _time(moment + timedelta(seconds=10)))


def file_id(number: int) -> str:
    return f"{UUID(int=number + 1)}-0"


def base_name(group: str, write: Write, extension: str) -> str:
    return f"{group}_{WRITE_TOKEN}_{write.requested}.{extension}"


def log_name(group: str, write: Write) -> str:
    return f".{group}_{write.requested}.log.1_{WRITE_TOKEN}"


class PlainTableWriter:
    """Writes a new table into a folder, one completed write after the other."""

    def __init__(self, folder: Path, properties: Mapping[str, str], schema_text: str) -> None:
        # A table that can be built again need not survive a power cut.
        self._storage = open_storage(Location(str(folder), {"durable": False}))
        self._schema_text = schema_text
        self._layout = layout_of(properties)
        self._storage.put(PROPERTIES_PATH, format_properties(properties, "benchmark"))

    def put(self, path: str, payload: bytes) -> None:
        """Write a file of whatever kind."""
        self._storage.put(path, payload)

    def partition(self, path: str, write: Write) -> None:
        """Make a partition known to readers that list storage."""
        depth = path.count("/") + 1 if path else 0
        content = {"commitTime": write.requested, "partitionDepth": str(depth)}
        payload = format_properties(content, "partition metadata")
        self.put(below(path, PARTITION_METADATA), payload)

    def base_rows(self, group: str, write: Write, rows: pa.Table, key: str) -> WriteStat:
        """Write rows as the base file of a new file group, in a table without partitions."""
        name = base_name(group, write, "parquet")
        with self._storage.create(name) as sink:
            table = with_meta_columns(rows, write, name, key)
            pq.write_table(table, sink, compression="snappy", row_group_size=ROW_GROUP_ROWS)
        entry = self._storage.stat(name)
        assert entry is not None
        return base_stat(group, name, "", rows=len(rows), size_bytes=entry.size_bytes)

    def commit(
        self,
        write: Write,
        stats: Sequence[WriteStat],
        *,
        action: Action = Action.DELTA_COMMIT,
        operation: Operation = Operation.UPSERT,
    ) -> None:
        """Complete a write with what it says it did."""
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by_partition.setdefault(stat.partition_path or "", []).append(stat)
        metadata = CommitMetadata(
            partition_to_write_stats={path: tuple(own) for path, own in by_partition.items()},
            extra_metadata={SCHEMA_KEY: self._schema_text},
            operation_type=operation.value,
        )
        for state in (State.REQUESTED, State.INFLIGHT):
            self._create(Instant(write.requested, action, state))
        completed = Instant(write.requested, action, State.COMPLETED, write.completed)
        self._create(completed, commit.encode(metadata))

    def _create(self, instant: Instant, content: bytes = b"") -> None:
        create_instant(self._storage, self._layout, instant, content)


def with_meta_columns(rows: pa.Table, write: Write, file: str, key: str) -> pa.Table:
    """The rows with Hudi's five columns in front."""
    numbers = pc.cast(pa.array(np.arange(len(rows))), pa.string())
    meta = (
        _repeated(write.requested, rows),
        pc.binary_join_element_wise(f"{write.requested}_0", numbers, "_"),
        rows[key],
        _repeated("", rows),
        _repeated(file, rows),
    )
    columns = dict(zip(META_COLUMNS, meta, strict=True))
    return pa.table(columns | dict(zip(rows.column_names, rows.columns, strict=True)))


def base_stat(group: str, path: str, partition: str, *, rows: int, size_bytes: int) -> WriteStat:
    """What a commit says of a new base file."""
    return WriteStat(
        file_id=group,
        path=path,
        partition_path=partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
    )


def log_stat(
    group: str,
    path: str,
    partition: str,
    *,
    size_bytes: int,
    updates: int = 0,
    deletes: int = 0,
) -> WriteStat:
    """What a commit says of a new log file."""
    return WriteStat(
        file_id=group,
        path=path,
        partition_path=partition,
        num_writes=updates,
        num_update_writes=updates,
        num_deletes=deletes,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(path.rpartition("/")[2],),
    )


def below(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _repeated(text: str, rows: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), len(rows))


def _time(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}000"
