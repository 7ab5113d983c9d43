"""Compaction of 1.5 million rows, a tenth of them updated in logs, beside pyarrow and Java.

Everybody begins with the same table and ends with base files that hold all rows.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import services
from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Clocked, Measure, Rounds, faster, in_turns, near
from bench.places import built_once
from bench.private_copies import new_folder, private_copy
from bench.services import MeasuredService
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_columns, order_rows
from bench.write_workload import CHECKED_COLUMN, KEY, ORDERING
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.table import Table

FLOOR = "pyarrow's read and write of the base files"
AT_MOST, AT_LEAST, LIMIT_MB = 1.2, 6.0, 500.0
KEY_WIDTH, SEED = 36, 7
PART = "part"
# One file for each group, whatever is guessed of the size of its rows.
ONE_FILE = {
    "hoodie.parquet.compression.codec": "snappy",
    "hoodie.parquet.max.file.size": str(64 << 30),
    "hoodie.parquet.small.file.limit": "0",
}


@dataclass(frozen=True, slots=True)
class Slices:
    """So many slices with logs of updates and deletes, compacted by so many cores."""

    count: int
    cores: int
    rows: int = 1_500_000

    @property
    def updates(self) -> int:
        return self.rows // 10

    @property
    def deletes(self) -> int:
        return self.rows // 100

    def __str__(self) -> str:
        slices = "one slice" if self.count == 1 else f"{self.count} slices"
        cores = "one core" if self.cores == 1 else f"{self.cores} cores"
        return f"compaction of {slices} on {cores}"


CASES = (Slices(1, 1), Slices(8, 2))
# Over a gigabyte in files.
LARGE = Slices(1, 2, rows=6_600_000)


def run() -> list[Measure]:
    beside = [measure for case in CASES for measure in _measured(case)]
    return [*beside, _memory()]


def _measured(case: Slices) -> Iterator[Measure]:
    table = table_of(case)
    with _cores(case.cores), services.compactor() as ours, services.java_compactor() as java:
        floor = in_turns({OURS: _ours(ours, table), FLOOR: _floor(ours, table)})
        yield near(
            f"{case}, beside pyarrow",
            floor,
            FLOOR,
            at_most=AT_MOST,
            includes="from the pending plan to the completed commit, with the metadata table's "
            "`files` and `column_stats`; the floor streams the base files alone, without logs, "
            "keys or commit; both in snappy, on the same cores",
        )
        name = java.ask("versions")
        rounds = in_turns({OURS: _ours(ours, table), name: _java(java, table)}, rounds=3)
        yield faster(
            f"{case}, beside Java",
            rounds,
            name,
            at_least=AT_LEAST,
            includes="from the pending plan to the completed commit, with the metadata table's "
            "`files` and `column_stats`, snappy both, in a JVM that has compacted before",
        )


def _ours(service: MeasuredService, table: Path) -> Clocked:
    def clocked() -> float:
        with private_copy(table) as copy:
            return float(service.ask("compact", table=str(copy))["seconds"])

    return clocked


def _floor(service: MeasuredService, table: Path) -> Clocked:
    def clocked() -> float:
        with new_folder() as out:
            out.mkdir()
            return float(service.ask("rewrite", table=str(table), out=str(out))["seconds"])

    return clocked


def _java(service: MeasuredService, table: Path) -> Clocked:
    """Java's compaction, whose rows must be those that the table had."""
    rows = Table(str(table)).read_arrow(columns=[CHECKED_COLUMN])[CHECKED_COLUMN]
    expected = [len(rows), sum(rows.to_pylist())]

    def clocked() -> float:
        with private_copy(table) as copy:
            seconds = float(service.ask("compact", table=str(copy)))
            found = service.ask("checksum", table=str(copy), column=CHECKED_COLUMN)
            assert found == expected
            return seconds

    return clocked


def _memory() -> Measure:
    """A new process each time, which reports the most memory it ever had."""
    table, load = table_of(LARGE), ForeignLoad()
    answers = []
    for _ in range(2):
        with _cores(LARGE.cores), services.compactor() as ours, private_copy(table) as copy:
            answers.append(ours.ask("compact", table=str(copy)))
    assert all(answer["rows"] == LARGE.rows - LARGE.deletes for answer in answers)
    worst = max(answers, key=lambda answer: answer["peak_mb"] - answer["base_mb"])
    stored_gb = sum(one.stat().st_size for one in table.rglob("*") if one.is_file()) / 1e9
    return Measure(
        f"{LARGE}, {stored_gb:.1f} GB in files",
        worst["peak_mb"] - worst["base_mb"],
        "MB above the base",
        Bound(LIMIT_MB),
        f"the highest resident memory of {len(answers)} new processes, {worst['peak_mb']:.0f} MB, "
        f"less the {worst['base_mb']:.0f} MB after importing Lakewarden",
        Rounds({OURS: tuple(answer["seconds"] for answer in answers)}, load.cores()),
    )


def table_of(case: Slices) -> Path:
    """The table that everybody compacts copies of; built when it is missing."""
    name = f"compacting-{case.count}-{case.rows}"
    return built_once(name, partial(_build, case=case))


def _build(folder: Path, case: Slices) -> None:
    random = np.random.default_rng(SEED)
    ids = hex_texts(random, case.rows, KEY_WIDTH, dashes=True)
    parts = pa.array(np.arange(case.rows) % case.count).cast(pa.string())
    folder.rmdir()
    table = Table.create(
        str(folder),
        order_columns().append(pa.field(PART, pa.string())),
        key=[KEY],
        partition=[PART],
        ordering=[ORDERING],
        type="mor",
        index="SIMPLE",
        # Several workers would divide the rows among themselves.
        ports=Ports(executor=LocalExecutor(1)),
    )
    table.bulk_insert(_rows(random, ids, parts, FIRST_TS), options=ONE_FILE)
    touched = pa.array(random.permutation(case.rows)[: case.updates + case.deletes])
    changed, gone = touched[: case.updates], touched[case.updates :]
    newer = _rows(random, ids.take(changed), parts.take(changed), FIRST_TS + DAY_US)
    table.upsert(newer, options=ONE_FILE)
    late = pa.repeat(FIRST_TS + 9 * DAY_US, case.deletes)
    table.delete(pa.table({KEY: ids.take(gone), PART: parts.take(gone), ORDERING: late}))
    slices = table.file_slices()
    assert len(slices) == case.count
    assert all(len(slice_.log_files) == 2 for slice_ in slices)


def _rows(random: np.random.Generator, ids: pa.Array, parts: pa.Array, ts: int) -> pa.Table:
    return order_rows(random, ids, ts).append_column(PART, parts)


@contextmanager
def _cores(count: int) -> Iterator[None]:
    """Processes started meanwhile keep to so many cores."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[-count:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)
