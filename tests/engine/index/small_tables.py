"""Small tables on a storage in memory, made file by file."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.bloom import build_bloom
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.log.write import BlockOrigin, avro_blocks, delete_block
from lakewarden.engine.formats.parquet_footer import KeyFooter
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import META_COLUMNS

COLUMNS = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
WITH_META = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *COLUMNS])
_AVRO_TYPES = {pa.string(): "string", pa.int64(): "long"}


def avro_text(schema: pa.Schema) -> str:
    """The schema as Avro, all of its columns nullable."""
    fields = [
        {"name": field.name, "type": ["null", _AVRO_TYPES[field.type]], "default": None}
        for field in schema
    ]
    return json.dumps({"type": "record", "name": "row", "fields": fields})


# A row of a table: key, ordering value.
Row = tuple[str, int]


class SmallTable:
    """A partitioned table of version 9 without a metadata table; instants count up."""

    def __init__(self, *, table_type: str = "MERGE_ON_READ", **properties: str) -> None:
        self.storage = fresh_memory_storage()
        self._instants = 0
        settings = {
            "hoodie.table.name": "small",
            "hoodie.table.version": "9",
            "hoodie.table.type": table_type,
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": "p",
            "hoodie.table.keygenerator.type": "SIMPLE",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.table.create.schema": avro_text(COLUMNS),
        } | {name.replace("__", "."): value for name, value in properties.items()}
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.storage.put(".hoodie/hoodie.properties", text.encode())

    def state(self) -> Snapshot:
        return load_snapshot(self.storage)

    def base_file(
        self,
        partition: str,
        file_id: str,
        rows: Sequence[Row],
        *,
        footer_keys: Sequence[str] | None = None,
        row_group_rows: int = 1 << 20,
    ) -> str:
        """A base file by a commit of its own; the name of the file.

        Its key footer tells the keys of the rows unless others are given; none means no footer.
        """
        instant = self._commit()
        name = f"{file_id}_0-0-0_{instant}.parquet"
        table = _table(partition, name, rows, instant)
        with self.storage.create(f"{partition}/{name}") as sink:
            writer = pq.ParquetWriter(sink, table.schema, store_schema=False)
            writer.write_table(table, row_group_size=row_group_rows)
            reported = [key for key, _ in rows] if footer_keys is None else footer_keys
            if reported:
                writer.add_key_value_metadata(_footer(reported))
            writer.close()
        self._begin(partition, instant)
        return name

    def log_file(
        self, partition: str, file_id: str, rows: Sequence[Row] = (), deleted: Sequence[str] = ()
    ) -> str:
        """A log file with records and unconditional deletes by a delta commit of its own."""
        instant = self._commit()
        name = f".{file_id}_{instant}.log.1_0-0-0"
        origin = BlockOrigin(instant, avro_text(WITH_META))
        blocks = list(avro_blocks(_table(partition, file_id, rows, instant), origin))
        if deleted:
            blocks.append(delete_block(_deletes(deleted, partition), origin))
        self.storage.put(f"{partition}/{name}", b"".join(blocks))
        self._begin(partition, instant)
        return name

    def _commit(self) -> str:
        self._instants += 1
        instant = f"{20260101000000000 + 10 * self._instants}"
        completed = f"{int(instant) + 5}"
        self.storage.put(f".hoodie/timeline/{instant}_{completed}.deltacommit", b"")
        return instant

    def _begin(self, partition: str, instant: str) -> None:
        path = f"{partition}/.hoodie_partition_metadata"
        if self.storage.stat(path) is None:
            self.storage.put(path, f"commitTime={instant}\npartitionDepth=1\n".encode())


def keyed_rows(
    rows: Sequence[tuple[str, str]],
    *,
    deletes: Sequence[int] = (),
    ordering: Mapping[int, int] | None = None,
) -> KeyedRows:
    """Rows as pairs of a partition and a key; `deletes` are the places of those that delete."""
    paths = [path for path, _ in rows]
    keys = pa.array([key for _, key in rows], pa.string())
    times = [(ordering or {}).get(at, 0) for at in range(len(rows))]
    is_delete = np.zeros(len(rows), np.bool_)
    is_delete[list(deletes)] = True
    return KeyedRows(
        pa.table([keys, pa.array(paths, pa.string()), pa.array(times, pa.int64())], schema=COLUMNS),
        keys,
        pa.array(paths, pa.string()).dictionary_encode(),
        is_delete,
        np.zeros(len(rows), np.bool_),
    )


def _table(partition: str, name: str, rows: Sequence[Row], instant: str) -> pa.Table:
    keys = [key for key, _ in rows]
    same = [[value] * len(rows) for value in (instant, f"{instant}_0_0")]
    columns = [*same, keys, [partition] * len(rows), [name] * len(rows)]
    columns += [keys, [partition] * len(rows), [time for _, time in rows]]
    arrays = [
        pa.array(values, field.type) for values, field in zip(columns, WITH_META, strict=True)
    ]
    return pa.table(arrays, schema=WITH_META)


def _footer(keys: Sequence[str]) -> dict[str, str]:
    bloom = build_bloom(pa.array(keys, pa.string()))
    return KeyFooter(
        bloom.text(),
        bloom.type_code,
        min(keys),
        max(keys),
    ).key_values()


def _deletes(keys: Sequence[str], partition: str) -> Deletes:
    return Deletes(
        pa.array(keys, pa.string()),
        pa.array([partition] * len(keys), pa.string()),
        (),
        np.ones(len(keys), np.bool_),
    )
