"""How far a stream goes: `python -m bench.stream_limits`, one axis after the other.

Each line is a table of its own, whose record index is in base files, and some batches with a tenth
of new rows. Seconds are those of CPU of the process, without services after the write; where the
storage is far, they are those of the clock. The figures go into the guide by hand.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from bench.remote_requests import distant_s3
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_rows
from bench.write_workload import KEY, KEY_WIDTH, ORDERING, SEED
from lakewarden.engine.storage.port import Location
from lakewarden.table import Table

BATCHES = 8
KEY_BYTES = 20
OPTIONS = {"lakewarden.write.inserts_to_logs": "true"}
SHARDS = "hoodie.metadata.global.record.level.index.min.filegroup.count"
CACHE = "lakewarden.stream.key_cache_bytes"
GLOBAL, PARTITIONED = "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"
SECONDARY = ("city", "note", "category")


@dataclass(frozen=True, slots=True)
class Case:
    """A table, and what its batches are like."""

    name: str
    keys: int
    rows: int = 10_000
    new_share: float = 0.1
    partitions: int = 1
    index: str = GLOBAL
    secondary: int = 0
    wait_ms: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def of(self, keys: pa.Array, chance: np.random.Generator, number: int) -> pa.Table:
        """Rows with these keys; a key says which partition it is in."""
        rows = order_rows(chance, keys, FIRST_TS + DAY_US * number)
        parts = [f"{int(key[:4], 16) % self.partitions:04d}" for key in keys.to_pylist()]
        return rows.append_column("part", pa.array(parts))


def cases(keys: int) -> list[Case]:
    """One axis after the other; what is not said is the usual."""
    usual = Case("usual", keys)
    return [
        *(replace(usual, name=f"{n:,} keys", keys=n) for n in (keys // 10, keys, 5 * keys)),
        *(replace(usual, name=f"batch of {n:,}", rows=n) for n in (1_000, 100_000, 250_000)),
        *(
            replace(usual, name=f"cache {share:.0%}", options={CACHE: f"{int(share * room)}"})
            for room in (int(keys * KEY_BYTES * 1.1),)
            for share in (0.25, 0.1, 0)
        ),
        *(replace(usual, name=f"{s:.0%} new keys", new_share=s) for s in (0, 1)),
        *(replace(usual, name=f"{n} shards", properties={SHARDS: f"{n}"}) for n in (10, 64, 256)),
        *(replace(usual, name=f"{n} partitions", partitions=n) for n in (100, 1_000)),
        replace(
            usual, name="100 partitions, index by partition", partitions=100, index=PARTITIONED
        ),
        *(replace(usual, name=f"{n} secondary indexes", secondary=n) for n in (1, 3)),
        *(
            replace(usual, name=f"{ms} ms away", keys=10_000, rows=1_000, wait_ms=ms)
            for ms in (0, 5, 30, 100)
        ),
    ]


def measured(case: Case) -> str:
    """One line of the table."""
    if case.wait_ms is not None:
        with distant_s3(case.wait_ms) as server:
            return _line(case, server.fresh_place())
    with tempfile.TemporaryDirectory() as folder:
        return _line(case, Location(f"{folder}/orders", {}))


def _line(case: Case, place: Location) -> str:
    chance = np.random.default_rng(SEED)
    known = hex_texts(chance, case.keys, KEY_WIDTH, dashes=False)
    table = _made(case, place, case.of(known, chance, 0))
    taken, found = [], []
    for number in range(BATCHES + 1):
        new = hex_texts(chance, int(case.rows * case.new_share), KEY_WIDTH, dashes=False)
        at = chance.choice(len(known), case.rows - len(new), replace=case.rows > len(known))
        batch = case.of(pa.concat_arrays([known.take(pa.array(at)), new]), chance, number + 1)
        begin = time.process_time() if case.wait_ms is None else time.perf_counter()
        commit = table.upsert(batch, {**OPTIONS, **case.options}, stream=("limits", number))
        end = time.process_time() if case.wait_ms is None else time.perf_counter()
        taken.append(end - begin)
        found.append(commit.seconds["find keys"])
    first, rest = taken[0], taken[1:]
    median = statistics.median(rest)
    return (
        f"| {case.name} | {first:.2f} | {median:.3f} | {max(rest):.3f} "
        f"| {case.rows / median:,.0f} | {statistics.median(found[1:]):.3f} | {max(found[1:]):.3f} |"
    )


def _made(case: Case, place: Location, rows: pa.Table) -> Table:
    table = Table.create(
        place.uri,
        rows.schema,
        key=[KEY],
        ordering=[ORDERING],
        partition=["part"] if case.partitions > 1 else [],
        type="mor",
        index=case.index,
        properties=dict(case.properties),
        storage_options=dict(place.options),
    )
    table.bulk_insert(rows)
    if case.index == GLOBAL:
        # A build puts all entries into base files, where a write leaves them in logs.
        table.drop_index("record_index")
        table.create_index("record_index")
    for column in SECONDARY[: case.secondary]:
        table.create_index(f"by_{column}", [column], "secondary_index")
    return Table(place.uri, dict(place.options))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="cases whose name has this")
    given = parser.parse_args()
    print("| | first | median | slowest | rows per second | finding keys, by the clock | slowest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in cases(given.keys):
        if given.only in case.name:
            print(measured(case), flush=True)


if __name__ == "__main__":
    main()
