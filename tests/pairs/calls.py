"""The public calls that are played in pairs, by name: each changes a table, or reads it."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from lakewarden import InvalidRequest, Table
from lakewarden.engine.table.alteration import ColumnChange
from lakewarden.engine.table.config import TableType
from lakewarden.engine.write.operations import alter
from tests.engine.services.service_table import row
from tests.writing.model import SCHEMA

Call = Callable[[Table], object]

_MORE_COLUMNS = SCHEMA.append(pa.field("extra", pa.int32()))


def _grow(table: Table) -> object:
    rows = [{**row("k3", 8, "b"), "extra": 3}]
    return table.upsert(pa.Table.from_pylist(rows, schema=_MORE_COLUMNS), evolve=True)


def _altered(change: ColumnChange) -> Call:
    return lambda table: table.write(alter([change]))


def _roll_back(table: Table) -> object:
    completed = [one for one in table.timeline().completed() if one.action.is_write]
    newest = max(completed, key=lambda one: one.completed or "", default=None)
    if newest is None:
        raise _nothing("no write is left")
    return table.rollback(newest.requested)


def _restore(table: Table) -> object:
    return table.restore(table.savepoints()[0].instant)


def _run_plans(table: Table) -> object:
    services = (table.compaction, table.log_compaction, table.clustering)
    pending = [(service, plan) for service in services for plan in service.pending()]
    if not pending:
        raise _nothing("no plan is pending")
    return [service.run([plan]) for service, plan in pending]


def _to_version_6(table: Table) -> object:
    if table.config.table_type is TableType.MERGE_ON_READ:
        raise _nothing("such tables of version 6 are only read")
    return table.change_version(6)


def _nothing(why: str) -> InvalidRequest:
    return InvalidRequest("nothing_to_do", what="Nothing was done.", why=why, now="Go on.")


WRITES: Mapping[str, Call] = {
    "upsert": lambda table: table.upsert([row("k0", 9), row("k1", 9, "b")]),
    "upsert new": lambda table: table.upsert([row("n0", 5), row("n1", 5, "c")]),
    "insert": lambda table: table.insert([row("n2", 5), row("n1", 4, "c")]),
    "bulk insert": lambda table: table.bulk_insert([row("n3", 5, "b")]),
    "delete": lambda table: table.delete_where("id in ('k1', 'k2')"),
    "update": lambda table: table.update_where([("p", "=", "a")], {"name": "U"}),
    "overwrite": lambda table: table.overwrite([row("o2", 5, "b")]),
    "overwrite partitions": lambda table: table.overwrite_partitions([row("o1", 5, "a")]),
    "delete partitions": lambda table: table.delete_partitions(["p=a"]),
    "drop partitions": lambda table: table.drop_partitions(["p=b"]),
    "truncate": lambda table: table.truncate(),
    "grow": _grow,
    "add column": _altered(ColumnChange(column="z", adds=True, type=pa.int32())),
    "rename column": _altered(ColumnChange(column="v", new_name="v2")),
    "drop column": _altered(ColumnChange(column="v", drops=True)),
    "deduplicate": lambda table: table.repair_deduplicate(),
    "roll back": _roll_back,
    "restore": _restore,
}
SERVICES: Mapping[str, Call] = {
    "compact": lambda table: table.compaction.schedule_and_run(),
    "plan compaction": lambda table: table.compaction.schedule(cancellable=True),
    "compact logs": lambda table: table.log_compaction.schedule_and_run(),
    "cluster": lambda table: table.clustering.schedule_and_run(),
    "plan clustering": lambda table: table.clustering.schedule(cancellable=True),
    "run plans": _run_plans,
    "clean": lambda table: table.clean(commits_retained=1),
    "archive": lambda table: table.archive(min_commits=12, max_commits=14),
    "compact timeline": lambda table: table.compact_timeline(),
    "savepoint": lambda table: table.savepoint(),
    "sweep": lambda table: table.sweep(),
    "end stale": lambda table: table.end_stale(0),
    "roll back failed": lambda table: table.rollback_failed_writes(),
    "set settings": lambda table: table.set_settings({"hoodie.clean.automatic": "false"}),
    "version 6": _to_version_6,
    "version 8": lambda table: table.change_version(8),
}
INDEXES: Mapping[str, Call] = {
    "record index": lambda table: table.create_index("record_index"),
    "bloom filters": lambda table: table.create_index("bloom_filters"),
    "value index": lambda table: table.create_index("by_v", ["v"], "secondary_index"),
    "plan value index": lambda table: table.build_index("by_v", ["v"], op="schedule"),
    "run builds": lambda table: table.run_indexing(),
    "drop value index": lambda table: table.drop_index("by_name"),
    "refresh record index": lambda table: table.refresh_index("record_index"),
    "refresh statistics": lambda table: table.refresh_index("column_stats"),
    "set index": lambda table: table.set_index("GLOBAL_SIMPLE"),
    "drop metadata table": lambda table: table.delete_metadata_table(),
    "create metadata table": lambda table: table.create_metadata_table(),
    "maintain metadata table": lambda table: table.maintain_metadata(),
}
CHANGES: Mapping[str, Call] = {**WRITES, **SERVICES, **INDEXES}

# What they answer must be true before the other call, or after it.
READS: Mapping[str, Callable[[Table], pa.Table]] = {
    "read": lambda table: table.read_arrow(),
    "read listed": lambda table: table.read_arrow(use_metadata=False),
    "filter": lambda table: table.read_arrow(filter="name = 'k3 at 2' or lower(name) = 'u'"),
    "look up": lambda table: table.lookup(["k0", "k3", "n0"]),
    "look up values": lambda table: table.lookup(["k3 at 2", "U"], by="name"),
}
