"""Upserts of ten rows: beside delta-rs, into many file groups and partitions, and 500 in a row."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench import services
from bench.measure import Bound, Clocked, Measure, Rounds, in_turns, near, within
from bench.places import built_once
from bench.private_copies import new_folder, private_copy
from lakewarden.table import Table

KEY, PARTITION, ORDERING = "id", "p", "ts"
GROUPS, PARTITIONS, ROWS_OF_ONE = 1_000, 10_000, 20
ROUNDS = 15
IN_A_ROW, COMPARED = 500, 50
# Each file group takes so many rows, and no small one is filled up.
SPLIT = {
    "hoodie.copyonwrite.insert.auto.split": False,
    "hoodie.copyonwrite.insert.split.size": ROWS_OF_ONE,
    "hoodie.parquet.small.file.limit": 0,
}
SERVICES = {
    "hoodie.clean.automatic": True,
    "hoodie.archive.automatic": True,
    "hoodie.compact.inline": True,
}
RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": True}
MS_MAX: Mapping[str, float] = {"SIMPLE": 150, "BLOOM": 60, "BUCKET": 60, "record index": 60}
# How many times the time of the peer one file group may take; many partitions have a limit.
_CASES = (("one file group", 1, 2), ("10,000 partitions", PARTITIONS, 0))
INCLUDES = (
    "from ten rows in a Parquet file, all of one file group, to the completed commit; ours on an "
    "open copy-on-write table with the metadata table's `files` and `column_stats`, flushed to the "
    "disk; the peer opens its table anew and flushes nothing"
)


def run() -> list[Measure]:
    """Everybody takes turns; each upsert is of the same keys."""
    with new_folder() as folder, ExitStack() as stack:
        folder.mkdir(parents=True)
        return [
            *_beside_delta(folder, stack),
            *_many_groups(folder, stack),
            *_in_a_row(folder),
        ]


def _beside_delta(folder: Path, stack: ExitStack) -> Iterator[Measure]:
    delta = stack.enter_context(services.delta_rs())
    peer = delta.ask("versions")
    for case, partitions, at_most in _CASES:
        rows, some = _sources(folder, partitions * ROWS_OF_ONE, partitions)
        table = str(folder / f"delta-{partitions}")
        delta.ask("load", table=table, source=rows, partition=PARTITION)
        ask = partial(delta.clocked, "upsert", table=table, source=some)
        turns = {
            "Lakewarden": _upserts(_opened(stack, partitions, {}), some),
            peer: ask(key=KEY, ordering=ORDERING, partition=PARTITION),
        }
        rounds = in_turns(turns, rounds=ROUNDS, warm_ups=3)
        title = f"upsert of ten rows, {case}"
        if at_most:
            yield near(title, rounds, peer, at_most=at_most, includes=INCLUDES)
        else:
            yield within(title, rounds, at_most_ms=60, includes=INCLUDES)


def _many_groups(folder: Path, stack: ExitStack) -> Iterator[Measure]:
    _, some = _sources(folder, GROUPS * ROWS_OF_ONE, 1)
    kinds: Mapping[str, Mapping[str, object]] = {
        "SIMPLE": {},
        "BLOOM": {"hoodie.index.type": "BLOOM"},
        "BUCKET": {
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": GROUPS,
        },
        "record index": RECORD_INDEX,
    }
    turns = {
        name: _upserts(_opened(stack, 1, kind, groups=GROUPS), some) for name, kind in kinds.items()
    }
    rounds = in_turns(turns, rounds=ROUNDS, warm_ups=2)
    for name in kinds:
        title = f"upsert of ten rows, 1,000 file groups in a partition, {name}"
        yield within(title, rounds, at_most_ms=MS_MAX[name], includes=INCLUDES, ours=name)


def _in_a_row(folder: Path) -> Iterator[Measure]:
    """The same ten rows, again and again, with what keeps a table in order."""
    rows = _rows(10, 1)
    place = folder / "in-a-row"
    once = _bytes_below(_created(folder / "once", "mor", {}, rows))
    table = Table(str(_created(place, "mor", SERVICES, rows)))
    seconds = [_seconds(partial(table.upsert, rows)) for _ in range(IN_A_ROW)]
    first, last = tuple(seconds[:COMPARED]), tuple(seconds[-COMPARED:])
    rounds = Rounds({"the last 50": last, "the first 50": first}, 0.0)
    grown = statistics.median(last) / statistics.median(first)
    includes = "merge on read; cleaning, archiving and compacting as they are due, in the writes"
    case = "500 upserts of ten rows"
    yield Measure(case, grown, "times the time of the first 50", Bound(1.1), includes, rounds)
    taken = _bytes_below(place) / once
    yield Measure(f"{case}, the disk", taken, "times one commit", Bound(3), includes, rounds)


def _opened(stack: ExitStack, partitions: int, how: Mapping[str, object], groups: int = 1) -> Table:
    """A copy of a table that is made once."""
    kind = how.get("hoodie.index.type", "RLI" if how else "SIMPLE")
    rows = _rows(max(groups, partitions) * ROWS_OF_ONE, partitions)
    name = f"small-{groups}-{partitions}-{kind}"
    built = built_once(name, lambda folder: _created(folder / "t", "cow", {**SPLIT, **how}, rows))
    return Table(str(stack.enter_context(private_copy(built / "t"))))


def _created(place: Path, kind: str, how: Mapping[str, object], rows: pa.Table) -> Path:
    keys = {"key": [KEY], "partition": [PARTITION], "ordering": [ORDERING]}
    table = Table.create(str(place), rows.schema, type=kind, properties=how, **keys)  # type: ignore[arg-type]
    table.insert(rows)
    return place


def _rows(count: int, partitions: int) -> pa.Table:
    each = count // partitions
    return pa.table(
        {
            KEY: [f"key {number:07d}" for number in range(count)],
            PARTITION: [f"p{number // each:05d}" for number in range(count)],
            ORDERING: pa.array([1] * count, pa.int64()),
            "v": pa.array([float(number) for number in range(count)]),
        }
    )


def _sources(folder: Path, count: int, partitions: int) -> tuple[str, str]:
    """All rows, and ten of them, as Parquet files."""
    rows = _rows(count, partitions)
    paths = [str(folder / f"{name}-{count}-{partitions}.parquet") for name in ("all", "ten")]
    for path, some in zip(paths, (rows, rows.slice(0, 10)), strict=True):
        pq.write_table(some, path)
    return paths[0], paths[1]


def _upserts(table: Table, source: str) -> Clocked:
    return lambda: _seconds(lambda: table.upsert(pq.read_table(source)))


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _bytes_below(place: Path) -> int:
    files = itertools.chain([place], place.rglob("*"))
    return sum(path.stat().st_blocks * 512 for path in files)
