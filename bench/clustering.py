"""Clustering: many files into one as bytes, beside a file copy; along a z-order, beside Java."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench import services
from bench.measure import OURS, Clocked, Measure, clocked, faster, in_turns, near
from bench.own_writer import checksum
from bench.places import built_once
from bench.private_copies import new_folder, private_copy
from bench.workloads import FIRST_TS, hex_texts, order_columns, order_rows
from bench.write_workload import CHECKED_COLUMN, KEY, ORDERING, Checksum
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.table import Table

FLOOR = "a copy of the files"
AT_MOST, AT_LEAST = 1.5, 5.0
FILES_MAX = 2
KEY_WIDTH, SEED = 36, 11
STRATEGY = "hoodie.clustering.plan.strategy."
ZORDER = {
    f"{STRATEGY}sort.columns": "user_id,event_time",
    "hoodie.layout.optimize.strategy": "ZORDER",
}
ONE_FILE = {"hoodie.parquet.max.file.size": str(64 << 30), "hoodie.parquet.small.file.limit": "0"}


@dataclass(frozen=True, slots=True)
class ClusteredFiles:
    """So many base files of so many rows in one partition."""

    count: int
    rows_each: int

    def __str__(self) -> str:
        return f"{self.count} files of {self.rows_each:,} rows"


COPIED = ClusteredFiles(44, 600_000)
SORTED = ClusteredFiles(8, 250_000)


def run() -> list[Measure]:
    return [beside_copy(COPIED), *_beside_java(SORTED)]


def beside_copy(files: ClusteredFiles) -> Measure:
    """Our clustering without a sort, and a copy of the same files."""
    table = table_of(files)
    rounds = in_turns(
        {OURS: _on_copies(table, partial(_ours, options={})), FLOOR: partial(_copied, table)}
    )
    stored_mb = sum(path.stat().st_size for path in _base_files(table)) / 1e6
    return near(
        f"clustering without a sort, {files}, {stored_mb:,.0f} MB",
        rounds,
        FLOOR,
        at_most=AT_MOST,
        includes="from the opened table to the completed commit: the plan, two new files at once, "
        "the metadata table's `files` and `column_stats`; the copy is one file after the other by "
        "`shutil.copyfile`, flushed to the disk as our files are",
    )


def _beside_java(files: ClusteredFiles) -> Iterator[Measure]:
    table = table_of(files)
    with services.java_clusterer() as java:
        name = java.ask("versions")
        turns = {
            OURS: _on_copies(table, partial(_ours, options=ZORDER)),
            name: _on_copies(
                table,
                lambda copy: float(java.ask("cluster", table=str(copy))),
                lambda copy: java.ask("checksum", table=copy, column=CHECKED_COLUMN),
            ),
        }
        yield faster(
            f"clustering in z-order of two columns, {files}",
            in_turns(turns, rounds=3),
            name,
            at_least=AT_LEAST,
            includes="the plan and its execution up to the completed commit, with the metadata "
            "table's `files` and `column_stats`; our default is zstd at level 1, Java's gzip; in "
            "a JVM that has clustered before",
        )


def _ours(table: Path, options: dict[str, str]) -> float:
    return clocked(lambda: Table(str(table)).clustering.schedule_and_run(options=options))()


def _on_copies(
    table: Path, cluster: Callable[[Path], float], read: Callable[[str], Checksum] = checksum
) -> Clocked:
    """Work on private copies of a table; few files with the same rows have to come of it."""
    expected = checksum(str(table))

    def measured() -> float:
        with private_copy(table) as copy:
            seconds = cluster(copy)
            assert len(Table(str(copy)).file_slices()) <= FILES_MAX
            assert read(str(copy)) == expected
        return seconds

    return measured


def _copied(table: Path) -> float:
    """The seconds of a plain copy."""
    with new_folder() as folder:
        folder.mkdir()
        begin = time.perf_counter()
        for path in _base_files(table):
            target = folder / path.name
            shutil.copyfile(path, target)
            with target.open("rb") as file:
                os.fsync(file.fileno())
        return time.perf_counter() - begin


def _base_files(table: Path) -> list[Path]:
    return sorted(table.glob("*.parquet"))


def table_of(files: ClusteredFiles) -> Path:
    """The table that everybody clusters copies of; built when it is missing."""
    name = f"clustering-{files.count}-{files.rows_each}"
    return built_once(name, partial(_build, files=files))


def _build(folder: Path, files: ClusteredFiles) -> None:
    random = np.random.default_rng(SEED)
    folder.rmdir()
    table = Table.create(
        str(folder),
        order_columns(),
        key=[KEY],
        ordering=[ORDERING],
        index="SIMPLE",
        # Several workers would divide the rows among themselves.
        ports=Ports(executor=LocalExecutor(1)),
    )
    for _ in range(files.count):
        ids = hex_texts(random, files.rows_each, KEY_WIDTH, dashes=True)
        table.bulk_insert(order_rows(random, ids, FIRST_TS), options=ONE_FILE)
    assert len(table.file_slices()) == files.count
