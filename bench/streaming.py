"""Batches of a stream, 90 % updates, one after the other, with compaction, clean and archiving.

Then into a large table: our writes alone, and our stream on Spark beside Java's sink and Delta's
MERGE, in seconds of CPU of all processes.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import services
from bench.machine import ForeignLoad, family_seconds
from bench.measure import OURS, Bound, Measure, Rounds, faster
from bench.places import WORK, built_once
from bench.private_copies import private_copy
from bench.services import MeasuredService
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_rows
from bench.write_workload import KEY, KEY_WIDTH, ORDERING, SEED
from lakewarden.table import Table

NEW_SHARE = 0.1
BATCHES, ROWS, KEYS = 1_000, 1_000, 200_000
COMPARED = BATCHES // 10
# Batches of so many rows into a larger table, and how many of them are measured after a first one.
LARGE_KEYS = 5_000_000
LARGE_ROWS, LARGE_BATCHES = (10_000, 100_000), 3
ENGINE_SECONDS, SPARK_SECONDS = 0.15, 0.7
# How much more the peers have to take, at the least.
JAVA_TIMES, JAVA_UNFILLED_TIMES = 15, 8
UNFILLED = {"hoodie.parquet.small.file.limit": "0"}
TENDED = {
    "lakewarden.write.inserts_to_logs": "true",
    "lakewarden.services.beside": "true",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "20",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
}


def run() -> list[Measure]:
    """One stream for as long as it shows whether it gets slower, and streams into many keys."""
    with tempfile.TemporaryDirectory() as folder:
        flat = _seconds(f"{folder}/flat", KEYS, ROWS, BATCHES)
    includes = (
        f"{BATCHES:,} batches of {ROWS:,} rows, a tenth of them new, into {KEYS:,} keys of "
        f"{KEY_WIDTH} characters with a global record index; services run beside them"
    )
    return [
        _figure("last tenth", flat.growth, "times the first tenth", 1.15, includes, flat.rounds),
        _figure("slowest batch", flat.worst, "times the median", 3, "the same", flat.rounds),
        *beside_peers(),
    ]


def beside_peers(keys: int = LARGE_KEYS) -> Iterator[Measure]:
    """Batches into many keys: by us alone, by our stream on Spark, and by the peers'."""
    material = built_once(f"stream-{keys}", partial(_large, keys))
    contestants = {
        OURS: (services.own_stream, TENDED),
        JAVA: (services.java_stream, {}),
        JAVA_UNFILLED: (services.java_stream, UNFILLED),
        DELTA: (services.delta_stream, {}),
    }
    for rows in LARGE_ROWS:
        load = ForeignLoad()
        taken = {ALONE: _alone(material, rows)}
        for name, (started, options) in contestants.items():
            taken[name] = _on_spark(material, rows, started, options)
        rounds = Rounds(taken, load.cores())
        yield from _compared(f"a batch of {rows:,} rows into {keys:,} keys", rows, rounds)


ALONE, DELTA = f"{OURS} without Spark", "Delta's MERGE"
JAVA, JAVA_UNFILLED = "Java Hudi's sink", "Java Hudi's sink that fills no small files"


def _compared(case: str, rows: int, rounds: Rounds) -> Iterator[Measure]:
    includes = "CPU of all processes; the median without the first batch"
    is_small = rows == LARGE_ROWS[0]
    for name, most in ((ALONE, ENGINE_SECONDS), (OURS, SPARK_SECONDS)):
        bound = Bound(most) if is_small else None
        median = rounds.median(name)
        yield Measure(f"{case}, {name}", median, "s of CPU", bound, includes, rounds.only(name))
    least = {JAVA: JAVA_TIMES if is_small else JAVA_UNFILLED_TIMES, JAVA_UNFILLED: 8, DELTA: None}
    for name, times in least.items():
        yield faster(case, rounds, name, at_least=times, includes=includes)


def _large(keys: int, folder: Path) -> None:
    """A table whose record index is in base files, its rows as they came, and batches."""
    chance = np.random.default_rng(SEED)
    known = hex_texts(chance, keys, KEY_WIDTH, dashes=False)
    rows = order_rows(chance, known, FIRST_TS)
    pq.write_table(rows, folder / "rows.parquet")
    table = _filled(str(folder / "orders"), rows)
    table.drop_index("record_index")
    table.create_index("record_index")
    for count in LARGE_ROWS:
        for number in range(LARGE_BATCHES + 1):
            batch, known = _batch(chance, known, count, number)
            (folder / str(count)).mkdir(exist_ok=True)
            pq.write_table(batch, folder / str(count) / f"{number}.parquet")


def _batches(material: Path, rows: int) -> list[Path]:
    return sorted((material / str(rows)).glob("*.parquet"))


def _alone(material: Path, rows: int) -> tuple[float, ...]:
    taken = []
    with private_copy(material / "orders") as path:
        table = Table(str(path))
        for number, file in enumerate(_batches(material, rows)):
            batch, begin = pq.read_table(file), time.process_time()
            table.upsert(batch, TENDED, stream=("bench", number))
            taken.append(time.process_time() - begin)
    return tuple(taken[1:])


def _on_spark(
    material: Path,
    rows: int,
    started: Callable[[], MeasuredService],
    options: Mapping[str, str],
) -> tuple[float, ...]:
    """What the processes of a stream take for each batch, but for the first one."""
    batches, taken = _batches(material, rows), []
    with tempfile.TemporaryDirectory(dir=WORK) as folder, started() as service:
        arriving = Path(folder, "arriving")
        arriving.mkdir()
        asked: dict[str, Any] = {"source": str(arriving), "checkpoint": f"{folder}/checkpoint"}
        with private_copy(material / "orders") as path:
            if started is services.delta_stream:
                path = Path(folder, "delta")
                service.ask("load", table=str(path), source=str(material / "rows.parquet"))
            service.ask(
                "begin", table=str(path), sample=str(batches[0]), options=dict(options), **asked
            )
            for number, file in enumerate(batches):
                begin = family_seconds(service.pid)
                (arriving / file.name).hardlink_to(file)
                assert service.ask("taken") == number
                taken.append(family_seconds(service.pid) - begin)
            service.ask("end")
    return tuple(taken[1:])


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
        batch, known = _batch(chance, known, rows, number)
        begin = time.perf_counter(), time.process_time()
        table.upsert(batch, TENDED, stream=("bench", number))
        wall.append(time.perf_counter() - begin[0])
        cpu.append(time.process_time() - begin[1])
    return _Course(tuple(wall), tuple(cpu), load.cores())


def _batch(
    chance: np.random.Generator, known: pa.Array, rows: int, number: int
) -> tuple[pa.Table, pa.Array]:
    """A batch, and the keys that the table has after it."""
    new = hex_texts(chance, int(rows * NEW_SHARE), KEY_WIDTH, dashes=False)
    at = chance.choice(len(known), rows - len(new), replace=False)
    keys = pa.concat_arrays([known.take(pa.array(at)), new])
    return order_rows(chance, keys, FIRST_TS + DAY_US * number), pa.concat_arrays([known, new])


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
