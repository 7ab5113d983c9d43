"""A table of 10,000 partitions with its metadata table; its files are but names and sizes."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from bench.places import built_once
from bench.table_properties import metadata_table_properties, table_properties
from bench.tables import (
    PlainTableWriter,
    Write,
    base_name,
    base_stat,
    below,
    file_id,
    log_name,
    log_stat,
    write_at,
)
from bench.workloads import order_columns
from lakewarden.engine.formats.avro.arrow_types import arrow_schema, avro_schema, record_names
from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.hfile import HFile, write_hfile
from lakewarden.engine.formats.instant_metadata.commit import Operation, WriteStat
from lakewarden.engine.formats.log.write import BlockOrigin, hfile_block
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.metadata.reading.files import ALL_PARTITIONS_KEY, FILES_COLUMN
from lakewarden.engine.table.config import METADATA_FOLDER, TableType
from lakewarden.engine.timeline.instants.instant import Action
from tests.golden_tables import archive_of, unpack

PARTITIONS = 10_000
LATER_WRITES = 9
TOUCHED = 12

NAME = "orders"
FILES, FILES_GROUP = "files", "files-0000-0"
# A metadata table counts its first instants up from zero.
FIRST = Write("0" * 17, write_at(0).requested)
LOAD = write_at(0)
COMPACTION = write_at(0, second=30)
CONTENT = b"no rows"

# The files of partitions, each with its size.
Files = Mapping[str, Mapping[str, int]]


def partitioned_table() -> Path:
    """One load of all partitions, then small writes that the metadata table has in its logs."""
    return built_once(f"partitioned-{PARTITIONS}-{LATER_WRITES}", _build)


def _build(folder: Path) -> None:
    columns = order_columns()
    properties = table_properties(
        NAME,
        TableType.MERGE_ON_READ,
        columns,
        key="id",
        ordering="ts",
        partition_fields="region,day",
        metadata_partitions=FILES,
    )
    table = PlainTableWriter(folder, properties, avro_schema(columns, *record_names(NAME)))
    metadata = _MetadataWriter(folder)
    metadata.begin()
    loaded = {_partition(at): base_name(file_id(at), LOAD, "parquet") for at in range(PARTITIONS)}
    metadata.commit(LOAD, [])
    table.commit(LOAD, [_load(table, at, *item) for at, item in enumerate(loaded.items())])
    metadata.compact({path: {name: len(CONTENT)} for path, name in loaded.items()})
    for minute in range(1, LATER_WRITES + 1):
        write = write_at(minute)
        touched = range(minute, PARTITIONS, PARTITIONS // TOUCHED)[:TOUCHED]
        metadata.append(write, {_partition(at): _log(at, write) for at in touched})
        table.commit(write, [_append(table, write, at) for at in touched])


class _MetadataWriter:
    """Writes the `files` partition of a table's metadata table."""

    def __init__(self, table_folder: Path) -> None:
        self._schema_text = _metadata_schema()
        folder = table_folder / METADATA_FOLDER
        self._writer = PlainTableWriter(folder, metadata_table_properties(NAME), self._schema_text)
        self.commit = self._writer.commit

    def begin(self) -> None:
        self._writer.partition(FILES, FIRST)
        self._writer.commit(FIRST, [], operation=Operation.BULK_INSERT_PREPPED)

    def compact(self, files: Files) -> None:
        """A base file with everything."""
        name = base_name(FILES_GROUP, COMPACTION, "hfile")
        payload = self._hfile(files)
        self._writer.put(below(FILES, name), payload)
        stat = base_stat(FILES_GROUP, below(FILES, name), FILES, rows=1, size_bytes=len(payload))
        self._writer.commit(COMPACTION, [stat], action=Action.COMMIT, operation=Operation.COMPACT)

    def append(self, write: Write, files: Files) -> None:
        """A log with what one write has added."""
        name = log_name(FILES_GROUP, write)
        origin = BlockOrigin(write.requested, self._schema_text)
        payload = hfile_block(self._hfile(files), origin)
        self._writer.put(below(FILES, name), payload)
        stat = log_stat(FILES_GROUP, below(FILES, name), FILES, size_bytes=len(payload))
        self._writer.commit(write, [stat], operation=Operation.UPSERT_PREPPED)

    def _hfile(self, files: Files) -> bytes:
        everything = {ALL_PARTITIONS_KEY: dict.fromkeys(files, 0), **files}
        keys = sorted(everything, key=str.encode)
        schema = parse_schema(self._schema_text, FILES)
        records = [_record(key, everything[key]) for key in keys]
        rows = pa.Table.from_pylist(records, schema=arrow_schema(schema))
        encoded = encode_records(rows, schema, length_prefixed=False)
        values = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            len(keys),
            [None, pa.py_buffer(encoded.offsets.astype("int64")), encoded.content],
        )
        return write_hfile(
            pa.array([key.encode() for key in keys], pa.large_binary()),
            values,
            schema_text=self._schema_text,
            created_ms=0,
        )


def _record(key: str, sizes: Mapping[str, int]) -> dict[str, object]:
    kind = 1 if key == ALL_PARTITIONS_KEY else 2
    files = [(name, {"size": size, "isDeleted": False}) for name, size in sizes.items()]
    return {"key": "", "type": kind, FILES_COLUMN: files}


def _metadata_schema() -> str:
    """The schema that Java gives to metadata records, as one of its tables has it."""
    with tempfile.TemporaryDirectory() as folder:
        table = unpack(archive_of("mor_metadata_services"), Path(folder))
        path = next((table / METADATA_FOLDER / FILES).glob("*.hfile"))
        return HFile(BufferSource(path.read_bytes()), path.name).schema_text


def _load(table: PlainTableWriter, number: int, partition: str, name: str) -> WriteStat:
    path = below(partition, name)
    table.partition(partition, LOAD)
    table.put(path, CONTENT)
    return base_stat(file_id(number), path, partition, rows=1, size_bytes=len(CONTENT))


def _append(table: PlainTableWriter, write: Write, number: int) -> WriteStat:
    partition = _partition(number)
    path = below(partition, log_name(file_id(number), write))
    table.put(path, CONTENT)
    return log_stat(file_id(number), path, partition, size_bytes=len(CONTENT), updates=1)


def _log(number: int, write: Write) -> dict[str, int]:
    return {log_name(file_id(number), write): len(CONTENT)}


def _partition(number: int) -> str:
    return f"region={number % 50:02d}/day={number // 50:05d}"
