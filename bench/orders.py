"""Order tables: rows of the usual kinds, and logs that change some of them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.places import built_once
from bench.table_properties import table_properties
from bench.tables import (
    PlainTableWriter,
    Write,
    file_id,
    log_name,
    log_stat,
    with_meta_columns,
    write_at,
)
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_columns, order_rows
from lakewarden.engine.formats.avro.arrow_types import avro_schema, record_names
from lakewarden.engine.formats.instant_metadata.commit import Operation, WriteStat
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.log.write import BlockOrigin, avro_blocks, delete_block
from lakewarden.engine.table.config import TableType
from lakewarden.engine.timeline.instants.instant import Action

NAME, KEY, ORDERING = "orders", "id", "ts"
KEY_WIDTH = 36
SEED = 7
INSERT, UPSERT, DELETE = map(write_at, range(3))


@dataclass(frozen=True, slots=True)
class Groups:
    """So many file groups, each of so many rows, of which logs touch some."""

    count: int
    rows: int
    updates: int = 0
    inserts: int = 0
    deletes: int = 0

    @property
    def live_rows(self) -> int:
        """How many rows a snapshot has."""
        return self.count * (self.rows + self.inserts - self.deletes)

    def __str__(self) -> str:
        return "-".join(map(str, (self.count, self.rows, self.updates, self.inserts, self.deletes)))


def merge_on_read_orders(groups: Groups) -> Path:
    """A table of three delta commits: base files, logs with records, logs with deletes."""
    return built_once(f"merge_on_read-{groups}", partial(_build_merge_on_read, groups=groups))


def copy_on_write_orders(groups: Groups) -> Path:
    """A table of one commit: base files alone."""
    return built_once(f"copy_on_write-{groups}", partial(_build_copy_on_write, groups=groups))


def _build_merge_on_read(folder: Path, groups: Groups) -> None:
    writer = _writer(folder, TableType.MERGE_ON_READ)
    random = np.random.default_rng(SEED)
    bases, upserts, deletes = [], [], []
    for group in map(file_id, range(groups.count)):
        ids = _keys(random, groups.rows)
        touched = random.permutation(groups.rows)[: groups.updates + groups.deletes]
        updated, deleted = (ids.take(pa.array(at)) for at in np.split(touched, [groups.updates]))
        changed = pa.concat_arrays([updated, _keys(random, groups.inserts)])
        bases.append(writer.base_rows(group, INSERT, order_rows(random, ids, FIRST_TS), KEY))
        # Half a day later on average, so that some updates are older than the rows in the base.
        records = order_rows(random, changed, FIRST_TS + DAY_US // 2)
        upserts.append(_append_records(writer, group, records))
        deletes.append(_append_deletes(writer, group, deleted))
    writer.commit(INSERT, bases, operation=Operation.BULK_INSERT)
    writer.commit(UPSERT, upserts, operation=Operation.UPSERT)
    writer.commit(DELETE, deletes, operation=Operation.DELETE)


def _build_copy_on_write(folder: Path, groups: Groups) -> None:
    writer = _writer(folder, TableType.COPY_ON_WRITE)
    random = np.random.default_rng(SEED)
    stats = []
    for group in map(file_id, range(groups.count)):
        rows = order_rows(random, _keys(random, groups.rows), FIRST_TS)
        stats.append(writer.base_rows(group, INSERT, rows, KEY))
    writer.commit(INSERT, stats, action=Action.COMMIT, operation=Operation.BULK_INSERT)


def _writer(folder: Path, kind: TableType) -> PlainTableWriter:
    properties = table_properties(NAME, kind, order_columns(), key=KEY, ordering=ORDERING)
    writer = PlainTableWriter(folder, properties, avro_schema(order_columns(), *record_names(NAME)))
    writer.partition("", INSERT)
    return writer


def _keys(random: np.random.Generator, count: int) -> pa.Array:
    return hex_texts(random, count, KEY_WIDTH, dashes=True)


def _append_records(writer: PlainTableWriter, group: str, records: pa.Table) -> WriteStat:
    name = log_name(group, UPSERT)
    # In a log, the meta column of the file name has the file group alone.
    rows = with_meta_columns(records, UPSERT, group, KEY)
    payload = b"".join(avro_blocks(rows, _origin(UPSERT)))
    writer.put(name, payload)
    return log_stat(group, name, "", size_bytes=len(payload), updates=len(rows))


def _append_deletes(writer: PlainTableWriter, group: str, keys: pa.Array) -> WriteStat:
    name = log_name(group, DELETE)
    everywhere = pa.repeat(pa.scalar("", pa.string()), len(keys))
    deletes = Deletes(keys, everywhere, (), np.ones(len(keys), dtype=bool))
    payload = delete_block(deletes, _origin(DELETE))
    writer.put(name, payload)
    return log_stat(group, name, "", size_bytes=len(payload), deletes=len(keys))


def _origin(write: Write) -> BlockOrigin:
    columns = with_meta_columns(order_columns().empty_table(), write, "", KEY).schema
    return BlockOrigin(write.requested, avro_schema(columns, *record_names(NAME)))
