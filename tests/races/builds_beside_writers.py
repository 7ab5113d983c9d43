"""Build indexes beside writers and kill the builder: `python -m tests.races.builds_beside_writers`.

Four processes write to one table on a local disk as fast as they can, each to a partition of its
own. Meanwhile each kind of index is built by another one, which is niced, and killed at random
moments; the next one goes on. When the index is ready the writers stop for a while: rows are what
their journals say, and every index what a recomputation gives. Printed are also how long a write
takes beside a build and without one, by the clock and of its processor, which says more where
others use the machine, and the longest hold of the table's lock by a builder.
"""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Creation, Location, Won
from lakewarden.engine.testing.faults import FaultyStorage
from tests.all_kinds import differences

WRITERS = ("a", "b", "c", "d")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
    ]
)
PROPERTIES = {
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "filesystem",
    "lakewarden.index.expression.timezone": "UTC",
}
LOCK = ".hoodie/lock"
QUIET_SECONDS = 20.0
DAY = 86_400
NAMES = 10_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of index: its name, its column, and how it is built."""

    name: str
    columns: tuple[str, ...] = ()
    type: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def build(self, table: Table) -> object:
        """Build it, or go on with its build."""
        options = dict(self.options)
        return table.build_index(self.name, self.columns, self.type or self.name, options)


KINDS = (
    Kind("bloom_filters"),
    Kind("column_stats", ("n", "ts")),
    Kind("by_day", ("ts",), "column_stats", {"expr": "from_unixtime", "format": "yyyy-MM-dd"}),
    Kind("by_low", ("name",), "bloom_filters", {"expr": "lower"}),
    Kind("record_index", ("id",)),
    Kind("by_name", ("name",), "secondary_index"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What is run."""

    rows: int = 2_000_000
    kills: int = 50
    seed: int = 1
    type: str = "mor"
    kinds: tuple[Kind, ...] = KINDS
    # How many of the writers there are.
    writers: int = len(WRITERS)
    # Of the builder, above that of the writers.
    niceness: int = 10
    # How long writers are measured alone before each build.
    quiet_seconds: float = QUIET_SECONDS


@dataclass(slots=True)
class Taken:
    """What some pieces of work took, by the clock and of the processor."""

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def add(self, seconds: float, cpu_seconds: float) -> None:
        self.ms.append(seconds * 1000)
        self.cpu_ms.append(cpu_seconds * 1000)

    def times(self, other: "Taken") -> str:
        """How many times as much as others these took, by the median."""
        by_clock = _median(self.ms) / (_median(other.ms) or 1)
        return f"{by_clock:.2f} x, CPU {_median(self.cpu_ms) / (_median(other.cpu_ms) or 1):.2f} x"

    def __str__(self) -> str:
        return f"{_median(self.ms):.0f} ms, CPU {_median(self.cpu_ms):.0f} ({len(self.ms)})"


@dataclass(slots=True)
class Figures:
    """What has happened with one kind of index."""

    kind: str
    kills: int = 0
    builds: int = 0
    seconds: float = 0.0
    alone: Taken = field(default_factory=Taken)
    beside: Taken = field(default_factory=Taken)
    holds: Taken = field(default_factory=Taken)
    damage: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        words = (
            f"{self.kind:14} {self.builds} builds {self.kills} kills {self.seconds:6.1f} s",
            f"write alone {self.alone}",
            f"beside {self.beside}, {self.beside.times(self.alone)}",
            f"longest of {len(self.holds.ms)} holds {max(self.holds.ms, default=0):.0f} ms, "
            f"CPU {max(self.holds.cpu_ms, default=0):.0f}",
            *self.damage,
        )
        return "; ".join(words)


def _median(taken: Sequence[float]) -> float:
    return statistics.median(taken) if taken else 0.0


class LockWatch(FaultyStorage):
    """Notes how long the table's lock is held by this process."""

    def __init__(self, path: str, notes: Path) -> None:
        super().__init__(open_storage(Location(path)))
        self._notes, self._since = notes, (0.0, 0.0)

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        answer = super().create_exclusive(path, payload)
        if path == LOCK and isinstance(answer, Won):
            self._since = moment()
        return answer

    def delete(self, path: str) -> bool:
        if path == LOCK:
            note(self._notes, *since(self._since))
        return super().delete(path)


def moment() -> tuple[float, float]:
    """The time of the clock, and of the processor for this process."""
    return time.monotonic(), time.process_time()


def since(began: tuple[float, float]) -> tuple[float, float]:
    at, cpu = moment()
    return at - began[0], cpu - began[1]


def note(path: Path, *what: float) -> None:
    with path.open("a") as file:
        file.write(json.dumps(what) + "\n")


def noted(path: Path) -> list[list[float]]:
    """All whole lines of a file of figures."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def row(id_: str, partition: str, ts: int) -> dict[str, object]:
    number = int(id_.partition("-")[2])
    name = f"Name {(number + ts) % NAMES}"
    return {"id": id_, "p": partition, "ts": ts, "n": number % 1000, "name": name}


def new_table(run: Run, path: Path) -> Table:
    table = Table.create(
        str(path),
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=run.type,
        properties=PROPERTIES,
    )
    each = run.rows // len(WRITERS)
    table.drop_index("column_stats", if_exists=True)
    for partition in WRITERS:
        ids = [f"{partition}-{number:08d}" for number in range(each)]
        names = [f"Name {number % NAMES}" for number in range(each)]
        columns = {
            "id": ids,
            "p": [partition] * each,
            "ts": pa.array(range(each), pa.int64()),
            "n": pa.array([number % 1000 for number in range(each)], pa.int32()),
            "name": names,
        }
        table.bulk_insert(pa.table(columns, schema=SCHEMA))
    return table


def write(
    path: str, folder: Path, partition: str, seed: int, ts: int, each: int, stop: Event
) -> None:
    """Upsert and delete until the writers are stopped; what each key has become is written down."""
    chance, table = Random(seed), Table(path)
    known: dict[str, object] = {}
    new = each + seed % 1_000_000
    while not stop.is_set():
        ts, began = ts + 1, moment()
        ids = [f"{partition}-{chance.randrange(each):08d}" for _ in range(15)]
        try:
            if chance.random() < 0.2:
                gone = sorted(set(ids))[:5]
                table.delete(pa.table({"id": gone, "p": [partition] * len(gone)}))
                known |= dict.fromkeys(gone)
            else:
                ids += [f"{partition}-{new + number:08d}" for number in range(5)]
                new += 5
                rows = [row(one, partition, ts) for one in sorted(set(ids))]
                table.upsert(rows)
                known |= {str(one["id"]): one["name"] for one in rows}
        except Conflict:
            continue
        note(folder / f"{partition}.writes", began[0], *since(began))
    (folder / f"{partition}.{seed}.rows").write_text(json.dumps(known))


def build(path: str, folder: Path, kind: Kind, niceness: int) -> None:
    os.nice(niceness)
    kind.build(Table.on(LockWatch(path, folder / f"{kind.name}.holds")))


class Director:
    """Starts the writers and builders of a run, and kills builders."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder
        self._path = str(folder / "table")
        self._chance = Random(run.seed)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.all_kinds"])
        self._stop = self._context.Event()
        self._writers: list[BaseProcess] = []
        self._rows: dict[str, str | None] = {}
        self._ts = 0

    def play(self) -> Iterator[Figures]:
        table = new_table(self._run, self._folder / "table")
        left = self._run.kills
        for number, kind in enumerate(self._run.kinds):
            share = left // (len(self._run.kinds) - number)
            left -= share
            figures = Figures(kind.name)
            try:
                self._start_writers()
                time.sleep(self._run.quiet_seconds)
                began = time.monotonic()
                self._build(table, kind, share, figures)
                ended = time.monotonic()
            finally:
                self._stop_writers(figures)
            self._measure(kind, figures, began, ended)
            figures.damage += self._findings(table)
            yield figures

    def _build(self, table: Table, kind: Kind, share: int, figures: Figures) -> None:
        """Until the index is ready after so many kills; one that came too early is made anew."""
        longest = 2.0
        while True:
            began = time.monotonic()
            builder = self._started(build, self._path, self._folder, kind, self._run.niceness)
            is_to_die = figures.kills < share
            builder.join(self._chance.uniform(0.1, longest) if is_to_die else None)
            if builder.is_alive():
                builder.kill()
                builder.join()
                figures.kills += 1
                longest *= 1.2
                continue
            if builder.exitcode != 0:
                figures.damage.append(f"the builder ended with {builder.exitcode}")
                return
            figures.builds += 1
            figures.seconds = time.monotonic() - began
            longest = max(0.5, figures.seconds)
            if not is_to_die:
                return
            self._drop(table, kind)

    def _drop(self, table: Table, kind: Kind) -> None:
        """Whoever writes at that moment is waited for."""
        while True:
            try:
                table.drop_index(kind.name)
                return
            except Conflict:
                time.sleep(0.05)

    def _started(self, work: Callable[..., None], *arguments: object) -> BaseProcess:
        process = self._context.Process(target=work, args=arguments, daemon=True)
        process.start()
        return process

    def _start_writers(self) -> None:
        self._stop.clear()
        each = self._run.rows // len(WRITERS)
        for one in WRITERS[: self._run.writers]:
            seed = self._chance.getrandbits(31)
            # Later writers have later times, so that what they write counts.
            self._ts += 10 * DAY
            given = (self._path, self._folder, one, seed, self._ts, each, self._stop)
            self._writers.append(self._started(write, *given))

    def _stop_writers(self, figures: Figures) -> None:
        self._stop.set()
        for process in self._writers:
            process.join()
            if process.exitcode != 0:
                figures.damage.append(f"a writer ended with {process.exitcode}")
        self._writers.clear()
        for path in self._folder.glob("*.rows"):
            self._rows |= json.loads(path.read_text())
            path.unlink()

    def _measure(self, kind: Kind, figures: Figures, began: float, ended: float) -> None:
        for one in WRITERS:
            for at, seconds, cpu in noted(self._folder / f"{one}.writes"):
                if began - self._run.quiet_seconds <= at and at + seconds < began:
                    figures.alone.add(seconds, cpu)
                elif began <= at and at + seconds < ended:
                    figures.beside.add(seconds, cpu)
        for seconds, cpu in noted(self._folder / f"{kind.name}.holds"):
            figures.holds.add(seconds, cpu)

    def _findings(self, table: Table) -> list[str]:
        """What is wrong when nobody writes."""
        found = [f"index: {one}" for one in differences(table)]
        rows = table.read_arrow(["id", "name"])
        now = dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))
        wrong = [one for one, name in self._rows.items() if now.get(one) != name]
        found += [f"row {one}: {now.get(one)} instead of {self._rows[one]}" for one in wrong[:5]]
        if len(now) != rows.num_rows:
            found.append("a key is there twice")
        checks = table.validate()
        bad = [one for one in checks if one.finding.verdict is CheckVerdict.FAILED]
        return found + [f"validate: {one}" for one in bad]


def main() -> int:
    usual = Run()
    parser = ArgumentParser(prog="python -m tests.races.builds_beside_writers")
    parser.add_argument("--rows", type=int, default=usual.rows)
    parser.add_argument("--kills", type=int, default=usual.kills)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", default="mor", help="cow or mor")
    parser.add_argument("--writers", type=int, default=usual.writers, help="how many, of four")
    parser.add_argument("--nice", type=int, default=usual.niceness, help="niceness of the builder")
    parser.add_argument("--quiet", type=float, default=usual.quiet_seconds, help="seconds alone")
    parser.add_argument("--only", nargs="+", default=[kind.name for kind in KINDS])
    parser.add_argument("--folder", help="where the table is made; it is kept")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="builds-", dir=given.folder))
    kinds = tuple(kind for kind in KINDS if kind.name in given.only)
    run = Run(
        given.rows,
        given.kills,
        given.seed,
        given.type,
        kinds,
        given.writers,
        given.nice,
        given.quiet,
    )
    print(f"{run.rows:,} rows, {run.type}, seed {run.seed} in {folder}", flush=True)
    is_damaged = False
    for figures in Director(run, folder).play():
        print(figures, flush=True)
        is_damaged |= bool(figures.damage)
    return is_damaged


if __name__ == "__main__":
    sys.exit(main())
