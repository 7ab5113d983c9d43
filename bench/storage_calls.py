"""Storage calls of a small upsert: 10 rows into 5 file groups, with a record index."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bench.measure import Bound, Measure, Rounds
from bench.remote_requests import distant_s3
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.testing.fault_plan import StorageCall
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.table import Table

FILE_GROUPS = 5
ROWS = 10
SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
PROPERTIES = {
    # Each of the first writes begins a file group.
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.metadata.compact.max.delta.commits": 100,
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.bloom.num_entries": 50,
}
LOCKS = (".hoodie/lock", ".hoodie/.locks/table_lock.json")
# What the same upsert made at commit 4706c4f, counted by this module.
BEFORE: Mapping[str, Mapping[str, int]] = {
    "the local disk": {
        "read": 75,
        "read_if_present": 28,
        "list": 19,
        "create_exclusive": 11,
        "open": 11,
        "put": 10,
        "create": 5,
        "delete": 5,
        "stat": 5,
        "delete_folder": 1,
        "walk": 1,
    },
    "S3": {
        "read": 75,
        "read_if_present": 26,
        "list": 19,
        "open": 11,
        "put": 10,
        "create_exclusive": 9,
        "create": 5,
        "stat": 5,
        "read_versioned": 4,
        "replace_if": 4,
        "delete": 3,
        "delete_folder": 1,
        "walk": 1,
    },
}
SHARE_MAX = 0.75


def run() -> list[Measure]:
    """Count the calls on both kinds of storage, and compare them with those of before."""
    with tempfile.TemporaryDirectory() as folder, distant_s3() as s3:
        places = {"the local disk": Location(f"{folder}/table", {}), "S3": s3.fresh_place()}
        return [
            _measure(name, small_upsert(open_storage(location)))
            for name, location in places.items()
        ]


def small_upsert(
    storage: Storage, ports: Ports | None = None, properties: Mapping[str, object] | None = None
) -> tuple[StorageCall, ...]:
    """The calls of an upsert of known keys, two in each file group of a new table.

    Opening and closing a new file are one: what is written between them is sent at the end.
    """
    chosen = {**PROPERTIES, **(properties or {})}
    Table.create(
        "", SCHEMA, ["id"], index="RECORD_INDEX", properties=chosen, storage=storage, ports=ports
    )
    for group in range(FILE_GROUPS):
        Table.on(storage, ports).upsert([{"id": f"{group}-{row}", "v": 0} for row in range(ROWS)])
    rows = [{"id": f"{row % FILE_GROUPS}-{row}", "v": 1} for row in range(ROWS)]
    # All groups have been written to by one commit then, as they have been in use.
    Table.on(storage, ports).upsert(rows)
    counted = FaultyStorage(storage)
    table = Table.on(counted, ports)
    started = len(counted.calls)
    result = table.upsert(rows)
    assert (result.rows_updated, result.files) == (ROWS, FILE_GROUPS)
    return tuple(call for call in counted.calls[started:] if call.operation != "close")


@dataclass(frozen=True, slots=True)
class Stretches:
    """Calls by whether the table's lock was held; the calls to the lock itself are skipped."""

    outside: tuple[StorageCall, ...]
    holds: tuple[tuple[StorageCall, ...], ...]

    @classmethod
    def of(cls, calls: Sequence[StorageCall]) -> "Stretches":
        outside: list[StorageCall] = []
        holds: list[list[StorageCall]] = []
        is_held = False
        for call in calls:
            if call.path not in LOCKS:
                (holds[-1] if is_held else outside).append(call)
            elif call.operation in ("create_exclusive", "replace_if", "delete"):
                is_held = not is_held
                if is_held:
                    holds.append([])
        return cls(tuple(outside), tuple(map(tuple, holds)))


def _measure(place: str, calls: Sequence[StorageCall]) -> Measure:
    counts, before = Counter(call.operation for call in calls), BEFORE[place]
    kinds = sorted({*counts, *before}, key=lambda kind: (-before.get(kind, 0), kind))
    told = ", ".join(f"`{kind}` {before.get(kind, 0)} to {counts[kind]}" for kind in kinds)
    return Measure(
        f"on {place}",
        counts.total() / max(sum(before.values()), 1),
        "times the calls of commit 4706c4f",
        Bound(SHARE_MAX),
        f"from {sum(before.values())} calls to {counts.total()}, those of the lock among them: "
        f"{told}; counted where the engine meets its storage, from `Table.upsert` to its return; "
        f"the table has {FILE_GROUPS} file groups and six commits, its metadata table `files`, "
        "`column_stats` and a global record index; each group gets two rows",
        Rounds({}, 0.0),
    )
