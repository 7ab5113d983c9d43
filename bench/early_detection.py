"""Early conflict detection: what a large write and a small one on one file group write in vain.

The large one is older and takes all of 40 file groups; the small one comes while that writes.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock
from time import perf_counter, process_time
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import services
from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Measure, Rounds, in_turns, near
from bench.places import built_once
from bench.private_copies import private_copy
from bench.workloads import hex_texts
from lakewarden.engine.detection.rivals import GAVE_WAY
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, Strategy
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.table import Table

ROWS, GROUPS, SMALL_ROWS, WIDTH = 1_200_000, 40, 20, 256
# Java takes minutes for each story.
JAVA_ROWS = 240_000
SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
LATE = "write_conflict"
# The small write comes to a file group that the large one has not reached.
REACHED_LATE = 30
SEED = 19
WRITERS = 8
WITH, WITHOUT = "detection on", "detection off"
_PREFIX = "hoodie.write.concurrency.early.conflict."
_DIRECT = {"hoodie.write.markers.type": "DIRECT", "hoodie.embed.timeline.server": "false"}
_ON = {f"{_PREFIX}detection.enable": "true"}
_COMMITS = {f"{_PREFIX}check.commit.conflict": "true"}
_SERVER = {
    "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
    "hoodie.embed.timeline.server": "true",
    "hoodie.write.concurrency.async.conflict.detector.period_ms": "1000",
}
JAVA_STORIES: Mapping[str, Mapping[str, str]] = {
    "detection off": _DIRECT,
    "direct markers": {**_DIRECT, **_ON},
    "direct markers, commits checked": {**_DIRECT, **_ON, **_COMMITS},
    "marker server, commits checked": {**_SERVER, **_ON, **_COMMITS},
}


class Watched:
    """A storage that says what data files a write begins, and what is deleted of them."""

    def __init__(self, inner: Storage, *, at: int = 1) -> None:
        self._inner = inner
        self._at = at
        self._lock = Lock()
        self.has_begun = Event()
        self.files: list[tuple[float, str]] = []
        self.bytes_deleted = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create(self, path: str) -> pa.NativeFile:
        if path.startswith("p="):
            with self._lock:
                self.files.append((perf_counter(), path))
            if len(self.files) >= self._at:
                self.has_begun.set()
        return self._inner.create(path)

    def delete(self, path: str) -> bool:
        self._weigh([path])
        return self._inner.delete(path)

    def delete_all(self, paths: list[str]) -> None:
        self._weigh(paths)
        self._inner.delete_all(paths)

    def _weigh(self, paths: list[str]) -> None:
        entries = [self._inner.stat(path) for path in paths if path.startswith("p=")]
        self.bytes_deleted += sum(entry.size_bytes for entry in entries if entry)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a write has ended, when, and what it wrote in vain."""

    answer: str
    seconds: float
    at: float
    files: list[tuple[float, str]] = field(default_factory=list)
    bytes_in_vain: int = 0


def run() -> list[Measure]:
    """Our stories with every strategy that differs, what looking costs, and Java's stories."""
    return [*_ours(), _disjoint(), *_javas()]


def _ours() -> Iterator[Measure]:
    for strategy in (Strategy.SIMPLE, Strategy.TRANSACTIONAL):
        large, small, rounds = _story(_detecting(strategy), _detecting(strategy))
        assert (large.answer, small.answer) == ("committed", GAVE_WAY), (large, small)
        stays = "the older one" if strategy is Strategy.SIMPLE else "the one that announced first"
        yield _bytes(
            f"both look, {strategy}",
            small.bytes_in_vain + large.bytes_in_vain,
            Bound(0),
            f"{stays} commits; the small write gave way after {small.seconds:.1f} s, with "
            f"{len(small.files)} files started",
            rounds,
        )
    large, small, rounds = _story(_detecting(Strategy.SIMPLE), SEVERAL)
    assert (large.answer, small.answer) == (GAVE_WAY, "committed"), (large, small)
    late = sum(at > small.at + 1 for at, _ in large.files)
    yield _bytes(
        "the small one does not look, and commits in between",
        large.bytes_in_vain,
        None,
        f"the large write stopped {large.at - small.at:.1f} s after that commit, with "
        f"{len(large.files)} of {GROUPS} files started, {late} of them more than a second after it",
        rounds,
    )
    large, small, rounds = _story(SEVERAL, SEVERAL)
    assert (large.answer, small.answer) == (LATE, "committed"), (large, small)
    includes = f"the large write failed at its commit, with {len(large.files)} files"
    yield _bytes("no write looks", large.bytes_in_vain, None, includes, rounds)


def _bytes(case: str, in_vain: int, bound: Bound | None, includes: str, rounds: Rounds) -> Measure:
    (name,) = rounds.seconds
    return Measure(f"{name}: {case}", in_vain / 1e6, "MB in vain", bound, includes, rounds)


def _story(large: Mapping[str, str], small: Mapping[str, str]) -> tuple[Ended, Ended, Rounds]:
    begun = built_once(f"rivals-{ROWS}", partial(_build, rows=ROWS))
    load = ForeignLoad()
    with _loaded(begun) as table, ThreadPoolExecutor(1) as pool:
        stage = Watched(open_storage(Location(str(table))))
        rows = pq.read_table(begun / "large.parquet")
        writing = pool.submit(_ended, stage, rows, large)
        assert stage.has_begun.wait(600)
        own = Watched(open_storage(Location(str(table))))
        ended = _ended(own, _small(rows), small)
        whole = writing.result()
    return whole, ended, Rounds({OURS: (whole.seconds,)}, load.cores())


def _ended(stage: Watched, rows: pa.Table, options: Mapping[str, str]) -> Ended:
    began = perf_counter()
    try:
        Table.on(cast(Storage, stage), Ports()).upsert(rows, options=dict(options))
        answer = "committed"
    except Conflict as error:
        answer = error.code
    at = perf_counter()
    return Ended(answer, at - began, at, stage.files, stage.bytes_deleted)


def _detecting(strategy: Strategy) -> Mapping[str, str]:
    return {**SEVERAL, DETECTION.key: "true", STRATEGY.key: strategy.value}


def _small(rows: pa.Table, partition: str | None = None) -> pa.Table:
    """Some rows of one partition."""
    wanted = partition or f"g{REACHED_LATE}"
    numbers = np.flatnonzero(rows["p"].to_numpy(zero_copy_only=False) == wanted)
    return rows.take(pa.array(numbers[:SMALL_ROWS]))


@contextmanager
def _loaded(begun: Path) -> Iterator[Path]:
    with private_copy(begun / "table") as table:
        yield table


def _build(folder: Path, rows: int) -> None:
    random = np.random.default_rng(SEED)
    base, large = (_rows(random, rows, ts) for ts in (1, 2))
    pq.write_table(base, folder / "base.parquet")
    pq.write_table(large, folder / "large.parquet")
    path = str(folder / "table")
    Table.create(path, base.schema, key=["id"], partition=["p"], ordering=["ts"], index="SIMPLE")
    Table(path).bulk_insert(base)


def _rows(random: np.random.Generator, count: int, ts: int) -> pa.Table:
    """Keys dealt over the partitions, with texts that do not compress."""
    numbers = np.arange(count)
    return pa.table(
        {
            "id": pa.array([f"k{number:010d}" for number in numbers]),
            "p": pa.array([f"g{number % GROUPS:02d}" for number in numbers]),
            "ts": pa.repeat(pa.scalar(ts, pa.int64()), count),
            "qty": pa.array(numbers),
            "pad": hex_texts(random, count, WIDTH, dashes=False),
        }
    )


def _disjoint() -> Measure:
    """Writers side by side that have nothing in common, with detection and without."""
    begun = built_once(f"rivals-{JAVA_ROWS}", partial(_build, rows=JAVA_ROWS))
    rows = pq.read_table(begun / "large.parquet")
    each = GROUPS // WRITERS
    parts = [
        rows.filter(pc.is_in(rows["p"], pa.array(_partitions(first, first + each))))
        for first in range(0, GROUPS, each)
    ]
    turns = {
        name: partial(_written_by_all, begun, parts, options)
        for name, options in ((WITHOUT, SEVERAL), (WITH, _detecting(Strategy.SIMPLE)))
    }
    rounds = in_turns(turns, rounds=5)
    return near(
        f"{WRITERS} writers on {each} file groups each",
        rounds,
        WITHOUT,
        at_most=1.03,
        includes="seconds of CPU of all writers, which are threads of one process; none gave way",
        ours=WITH,
    )


def _written_by_all(begun: Path, parts: list[pa.Table], options: Mapping[str, str]) -> float:
    """The seconds of CPU; all have to commit."""
    with private_copy(begun / "table") as table, ThreadPoolExecutor(WRITERS) as pool:
        stages = [Watched(open_storage(Location(str(table)))) for _ in parts]
        before = process_time()
        ended = list(pool.map(_ended, stages, parts, [options] * WRITERS))
        seconds = process_time() - before
    assert {one.answer for one in ended} == {"committed"}, ended
    return seconds


def _partitions(first: int, end: int) -> list[str]:
    return [f"g{number:02d}" for number in range(first, end)]


def _javas() -> Iterator[Measure]:
    begun = built_once(f"rivals-{JAVA_ROWS}", partial(_build, rows=JAVA_ROWS))
    with services.java_rival() as java:
        name = java.ask("versions")
        loaded = built_once(f"java-rivals-{JAVA_ROWS}", partial(_load, java=java, begun=begun))
        with private_copy(loaded / "table") as table:
            order = java.ask("order", table=str(table), source=str(begun / "large.parquet"))
        small = begun / "small.parquet"
        rows = pq.read_table(begun / "large.parquet")
        pq.write_table(_small(rows, order[len(order) * 3 // 4].removeprefix("p=")), small)
        for story, options in JAVA_STORIES.items():
            load = ForeignLoad()
            with private_copy(loaded / "table") as table:
                found = java.ask(
                    "race",
                    table=str(table),
                    large=str(begun / "large.parquet"),
                    small=str(small),
                    options=options,
                )
            includes = (
                f"{JAVA_ROWS:,} rows; the large write: {found['large']}, with {found['files']} "
                f"files in vain; the small one: {found['small']}"
            )
            rounds = Rounds({name: (found["seconds"],)}, load.cores())
            yield _bytes(story, found["bytes"], None, includes, rounds)


def _load(folder: Path, java: services.MeasuredService, begun: Path) -> None:
    source = str(begun / "base.parquet")
    java.ask(
        "write", table=str(folder / "table"), source=source, operation="bulk_insert", options={}
    )
