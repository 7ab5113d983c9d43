"""Building indexes on 1 million rows in eight files, beside Java: CPU seconds.

The floors and targets are per million rows, so that the table has as many. Also how soon a build of
ten million rows is cancelled.
"""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import services
from bench.measure import OURS, Bound, Clocked, Measure, Rounds, clocked, faster, in_turns
from bench.places import built_once
from bench.private_copies import private_copy
from bench.workloads import hex_texts
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.table import Table

ROWS, FILES, NAMES = 1_000_000, 8, 10_000
LARGE_ROWS = 5_000_000
RECORD_INDEX = "record_index"
INCLUDES = (
    "CPU of the process, from the opened table to the ready index, its plan and its file groups "
    "among it; keys of 36 characters, 10,000 names"
)
_DAY = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}


@dataclass(frozen=True, slots=True)
class Case:
    """An index, what its build may take for a million rows, and how much more Java has to take."""

    name: str
    column: str
    cpu_seconds: float
    type: str = ""
    options: dict[str, str] = field(default_factory=dict)
    # Java builds it by a statement; what else it builds, a job of its own does.
    statement: str = ""
    times_java: float = 8.0

    @property
    def needs_record_index(self) -> bool:
        return self.name == "by_name"

    def build(self, path: Path) -> None:
        columns = [self.column] if self.column else []
        Table(str(path)).create_index(
            self.name, columns, self.type or self.name, dict(self.options)
        )


CASES = (
    Case(RECORD_INDEX, "id", 1.2, statement="CREATE INDEX record_index ON t (id)", times_java=15.0),
    Case(
        "by_name",
        "name",
        1.8,
        "secondary_index",
        statement="CREATE INDEX by_name ON t (name)",
        times_java=15.0,
    ),
    Case(
        "by_day",
        "ts",
        0.8,
        "column_stats",
        _DAY,
        "CREATE INDEX by_day ON t USING column_stats(ts) "
        "OPTIONS(expr='from_unixtime', format='yyyy-MM-dd')",
        15.0,
    ),
    Case(
        "by_low",
        "name",
        1.5,
        "bloom_filters",
        {"expr": "lower"},
        "CREATE INDEX by_low ON t USING bloom_filters(name) OPTIONS(expr='lower')",
    ),
    Case("bloom_filters", "", 0.1),
    Case("column_stats", "", 0.2),
)
# What the builds of the large table may take in seconds on two cores.
LARGE = {RECORD_INDEX: 5.0, "by_name": 8.0}
LOOKUP_TIMES = 3.0
# A build of so many rows is cancelled in so many seconds.
CANCELLED_ROWS, CANCEL_SECONDS = 10_000_000, 1.0


def run() -> list[Measure]:
    return [*_beside_java(), *_large(), cancelled(CANCELLED_ROWS)]


def _beside_java() -> Iterator[Measure]:
    for is_keyed in (False, True):
        table_of(ROWS, with_record_index=is_keyed)
    with services.java_indexer() as java:
        peer = java.ask("versions")
        for case in CASES:
            table = table_of(ROWS, with_record_index=case.needs_record_index)
            turns: dict[str, Clocked] = {OURS: partial(_cpu, table, case)}
            if case.statement:
                turns[peer] = partial(_javas, java, table, case)
            rounds = in_turns(turns, rounds=2)
            figure = rounds.median(OURS) * 1_000_000 / ROWS
            bound = Bound(case.cpu_seconds)
            yield Measure(
                f"{case.name}, CPU for 1 million rows", figure, "s", bound, INCLUDES, rounds
            )
            if case.statement:
                yield faster(
                    f"{case.name}, beside Java",
                    rounds,
                    peer,
                    at_least=case.times_java,
                    includes=f"{INCLUDES}; in a JVM that has built before",
                )


def _cpu(table: Path, case: Case) -> float:
    with private_copy(table) as copy:
        began = time.process_time()
        case.build(copy)
        return time.process_time() - began


def _javas(java: services.MeasuredService, table: Path, case: Case) -> float:
    with private_copy(table) as copy:
        by_key = case.needs_record_index or case.name == RECORD_INDEX
        answer = java.ask("build", table=str(copy), statement=case.statement, by_key=by_key)
        return float(answer["cpu_seconds"])


def _large() -> Iterator[Measure]:
    cases = {case.name: case for case in CASES}
    for name, seconds in LARGE.items():
        case = cases[name]
        table = table_of(LARGE_ROWS, with_record_index=case.needs_record_index)
        rounds = in_turns({OURS: partial(_wall, table, case)}, rounds=2, warm_ups=0)
        yield Measure(
            f"{name} of {LARGE_ROWS:,} rows",
            rounds.median(OURS),
            "s",
            Bound(seconds),
            "wall time on all cores, from the opened table to the ready index",
            rounds,
        )
    with private_copy(table_of(LARGE_ROWS, with_record_index=True)) as copy:
        cases["by_name"].build(copy)
        yield _lookups(Table(str(copy)))


def _wall(table: Path, case: Case) -> float:
    with private_copy(table) as copy:
        return clocked(partial(case.build, copy))()


def cancelled(rows: int) -> Measure:
    """A cancel while another process builds a record index."""
    table = table_of(rows, with_record_index=False)
    rounds = in_turns({OURS: partial(_cancel, table)}, rounds=3, warm_ups=0)
    return Measure(
        f"cancel of a build of {rows:,} rows",
        max(rounds.seconds[OURS]),
        "s",
        Bound(CANCEL_SECONDS),
        "the longest of all, from the call to its answer, while another process reads the table; "
        "nothing of the build remains, and the next write is as ever",
        rounds,
    )


def _cancel(source: Path) -> float:
    with private_copy(source) as copy:
        table = Table(str(copy))
        builder = multiprocessing.get_context("spawn").Process(
            target=_until_cancelled, args=(copy,)
        )
        builder.start()
        instant = _begun(copy, table)
        seconds = clocked(lambda: table.cancel(instant, "bench", force=True))()
        builder.join()
        left = [
            one for one in (copy / METADATA_FOLDER / RECORD_INDEX).glob("**/*") if one.is_file()
        ]
        assert not left
        assert not table.plans()
        row = {"id": "a new one", "name": "Name 0", "ts": 1_900_000_000, "v": 0.5}
        table.bulk_insert([row])
        assert table.read_arrow(["v"], filter="id = 'a new one'").num_rows == 1
        return seconds


def _until_cancelled(table: Path) -> None:
    with suppress(Conflict):
        CASES[0].build(table)


def _begun(path: Path, table: Table) -> str:
    """The instant of a build that has its file groups, and is reading the table."""
    while not list((path / METADATA_FOLDER / RECORD_INDEX).glob("*.log.*")):
        time.sleep(0.02)
    time.sleep(1.0)
    return next(one.instant for one in table.plans())


def _lookups(table: Table) -> Measure:
    """A value that 500 rows have, and as many keys of as many files."""
    chance = np.random.default_rng(3)
    peer = "by key"
    ids = table.read_arrow(["id"])["id"]

    def by_key() -> float:
        keys = ids.take(pa.array(chance.integers(0, len(ids), LARGE_ROWS // NAMES))).to_pylist()
        return clocked(lambda: table.lookup(keys, ["id", "name"]))()

    def by_value() -> float:
        name = f"Name {chance.integers(0, NAMES)}"
        return clocked(lambda: table.lookup([name], ["id", "name"], by="name"))()

    rounds: Rounds = in_turns({OURS: by_value, peer: by_key}, rounds=7)
    return Measure(
        f"lookup by a value of {LARGE_ROWS // NAMES} rows",
        rounds.median(OURS) / rounds.median(peer),
        "times a lookup of as many keys",
        Bound(LOOKUP_TIMES),
        "from the value, or from the keys, to an Arrow table of two columns",
        rounds,
    )


def table_of(rows: int, *, with_record_index: bool) -> Path:
    """The table that everybody builds on copies of; made when it is missing."""
    suffix = "-keyed" if with_record_index else ""
    build = partial(_build, rows=rows, with_record_index=with_record_index)
    return built_once(f"indexes-{rows}{suffix}", build)


def _build(folder: Path, rows: int, *, with_record_index: bool) -> None:
    chance = np.random.default_rng(9)
    names = pa.array([f"Name {number}" for number in range(NAMES)])
    schema = pa.schema(
        [("id", pa.string()), ("name", pa.string()), ("ts", pa.int64()), ("v", pa.float64())]
    )
    folder.rmdir()
    table = Table.create(str(folder), schema, key=["id"], ordering=["ts"], type="cow")
    table.drop_index("column_stats", if_exists=True)
    for _ in range(FILES):
        each = rows // FILES
        columns = [
            hex_texts(chance, each, 36, dashes=True),
            names.take(pa.array(chance.integers(0, NAMES, each))),
            pa.array(1_700_000_000 + chance.integers(0, 30 * 86_400, each)),
            pa.array(chance.random(each)),
        ]
        table.bulk_insert(
            pa.table(columns, schema=schema),
            options={"hoodie.parquet.small.file.limit": "0"},
        )
    if with_record_index:
        table.create_index(RECORD_INDEX, ["id"])
