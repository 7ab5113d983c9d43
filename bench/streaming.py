"""Batches of a stream, 90 % updates, one after the other, with compaction, clean and archiving."""

import statistics
import tempfile
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Measure, Rounds
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_rows
from bench.write_workload import KEY, KEY_WIDTH, ORDERING, SEED
from lakewarden.table import Table

NEW_SHARE = 0.1
BATCHES, ROWS, KEYS = 1_000, 1_000, 200_000
COMPARED = BATCHES // 10
# Batches of 10,000 rows into a larger table.
LARGE_KEYS, LARGE_ROWS, LARGE_BATCHES = 1_000_000, 10_000, 10
TENDED = {
    "lakewarden.write.inserts_to_logs": "true",
    "lakewarden.services.beside": "true",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "20",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
}


def run() -> list[Measure]:
    """One stream for as long as it shows whether it gets slower, and one into many keys."""
    with tempfile.TemporaryDirectory() as folder:
        flat = _seconds(f"{folder}/flat", KEYS, ROWS, BATCHES)
        large = _seconds(f"{folder}/large", LARGE_KEYS, LARGE_ROWS, LARGE_BATCHES + 1)
    includes = (
        f"{BATCHES:,} batches of {ROWS:,} rows, a tenth of them new, into {KEYS:,} keys of "
        f"{KEY_WIDTH} characters with a global record index; services run beside them"
    )
    return [
        _figure("last tenth", flat.growth, "times the first tenth", 1.15, includes, flat.rounds),
        _figure("slowest batch", flat.worst, "times the median", 3, "the same", flat.rounds),
        _figure(
            f"a batch of {LARGE_ROWS:,} rows into {LARGE_KEYS:,} keys",
            statistics.median(large.cpu[1:]),
            "s of CPU",
            0.15,
            "all threads of the process, services among them, but for the first batch",
            large.rounds,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Course:
    """What each batch of a stream took."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    foreign_cores: float

    @property
    def growth(self) -> float:
        return statistics.median(self.wall[-COMPARED:]) / statistics.median(self.wall[:COMPARED])

    @property
    def worst(self) -> float:
        return max(self.wall[1:]) / statistics.median(self.wall)

    @property
    def rounds(self) -> Rounds:
        return Rounds({OURS: self.wall}, self.foreign_cores)


def _figure(
    case: str, figure: float, unit: str, at_most: float, includes: str, rounds: Rounds
) -> Measure:
    return Measure(case, figure, unit, Bound(at_most), includes, rounds)


def _seconds(path: str, keys: int, rows: int, batches: int) -> _Course:
    chance = np.random.default_rng(SEED)
    known = hex_texts(chance, keys, KEY_WIDTH, dashes=False)
    table = _filled(path, order_rows(chance, known, FIRST_TS))
    wall, cpu, load = [], [], ForeignLoad()
    for number in range(batches):
        new = hex_texts(chance, int(rows * NEW_SHARE), KEY_WIDTH, dashes=False)
        at = chance.choice(len(known), rows - len(new), replace=False)
        batch = order_rows(
            chance, pa.concat_arrays([known.take(pa.array(at)), new]), FIRST_TS + DAY_US * number
        )
        known = pa.concat_arrays([known, new])
        begin = time.perf_counter(), time.process_time()
        table.upsert(batch, TENDED, stream=("bench", number))
        wall.append(time.perf_counter() - begin[0])
        cpu.append(time.process_time() - begin[1])
    return _Course(tuple(wall), tuple(cpu), load.cores())


def _filled(path: str, rows: pa.Table) -> Table:
    Table.create(
        path,
        rows.schema,
        key=[KEY],
        ordering=[ORDERING],
        type="mor",
        index="GLOBAL_RECORD_LEVEL_INDEX",
    ).bulk_insert(rows)
    return Table(path)
