"""Requests of small operations to an object store that is 30 ms away: how many, and how deep."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Protocol, TypeVar, cast
from urllib.request import urlopen
from uuid import uuid4

import pyarrow as pa
import s3fs

from bench.measure import OURS, Bound, Measure, Rounds
from bench.places import CHECKOUT
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.table import Table

WAIT_MS = 30
ROWS = 1000
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
SECONDS_MAX: Mapping[str, float] = {"upsert": 1.3}
_SERVER = CHECKOUT / "tests" / "engine" / "storage" / "s3_server.py"
_ASKED = "/--requests--"
# Each on a table that is opened for it, and in this order.
OPERATIONS: Mapping[str, Callable[[Table], object]] = {
    "open": lambda table: None,
    "schema": lambda table: table.schema,
    "read": lambda table: table.read_arrow(),
    "lookup": lambda table: table.lookup(["k7"]),
    "upsert": lambda table: table.upsert(_touched()),
    "insert": lambda table: table.insert([_row(-1, 1)]),
    "delete": lambda table: table.delete(["k7"]),
    "compaction": lambda table: table.compaction.schedule_and_run(),
    "clean": lambda table: table.clean(),
    "show_plans": lambda table: table.plans(),
}

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class DistantS3:
    """An S3 server that lets requests wait, and remembers them."""

    address: str

    @property
    def options(self) -> dict[str, object]:
        return {"key": "key", "secret": "secret", "client_kwargs": {"endpoint_url": self.address}}

    def fresh_place(self) -> Location:
        """A folder in a bucket of its own."""
        bucket = f"bench-{uuid4().hex}"
        s3fs.S3FileSystem(**self.options).call_s3("create_bucket", Bucket=bucket)
        return Location(f"s3://{bucket}/table", self.options)

    def asked(self) -> list[str]:
        """The requests since the last time."""
        with urlopen(self.address + _ASKED) as answer:
            return [f"{method} {path}" for method, path in json.load(answer)]


@contextmanager
def distant_s3(wait_ms: int = 0) -> Iterator[DistantS3]:
    """A server of its own, so many milliseconds away."""
    command = [sys.executable, str(_SERVER), str(wait_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield DistantS3(f"http://127.0.0.1:{int(server.stdout.readline())}")
        finally:
            server.terminate()


class Asked(Protocol):
    """What is asked by operations, and remembers it."""

    def asked(self) -> list[str]:
        """The requests since the last time."""
        ...


class Chain:
    """Counts how many requests of an operation wait for each other, whatever the machine does.

    Calls that may be made side by side are made in turn, each as if the others had not been.
    """

    at_once = 16
    workers = 1

    def __init__(self, s3: Asked) -> None:
        self.requests: list[str] = []
        self.depth = 0
        self._s3 = s3

    def begin(self) -> None:
        """Forget what was asked so far."""
        self._s3.asked()
        self.requests, self.depth = [], 0

    def count(self) -> None:
        """Add what was asked since the last time."""
        fresh = self._s3.asked()
        self.requests += fresh
        self.depth += len(fresh)

    def answers(self, calls: Sequence[Callable[[], AnswerT]]) -> list[AnswerT]:
        self.count()
        start, deepest, found = self.depth, self.depth, []
        for call in calls:
            self.depth = start
            found.append(call())
            self.count()
            deepest = max(deepest, self.depth)
        self.depth = deepest
        return found

    def map(
        self, function: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT]
    ) -> Iterator[AnswerT]:
        return iter(self.answers([partial(function, task) for task in tasks]))


class _Chained:
    """A storage whose calls make up a chain."""

    def __init__(self, inner: Storage, chain: Chain) -> None:
        self._inner = inner
        self.concurrency = chain

    def below(self, folder: str) -> "_Chained":
        return _Chained(self._inner.below(folder), self.concurrency)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def small_table(s3: DistantS3) -> Location:
    """A table of two slices, each with a log."""
    place = s3.fresh_place()
    Table.create(
        place.uri, SCHEMA, ["id"], ordering=["ts"], type="mor", storage_options=place.options
    )
    for first in (0, ROWS):
        rows = [_row(first + number, 1) for number in range(ROWS)]
        Table(place.uri, place.options).bulk_insert(rows)
    Table(place.uri, place.options).upsert(_touched())
    return place


def counted(s3: DistantS3) -> Mapping[str, Chain]:
    """What each operation asks of the store, and how deep."""
    place, chains = small_table(s3), {}
    for name, operation in OPERATIONS.items():
        chain = chains[name] = Chain(s3)
        chain.begin()
        storage = cast(Storage, _Chained(open_storage(place), chain))
        table = Table.on(storage, Ports(executor=chain))
        if name != "open":
            chain.begin()
        operation(table)
        chain.count()
    return chains


def run() -> list[Measure]:
    """Each of the operations, timed at a distance and counted by itself."""
    with distant_s3() as near:
        chains = counted(near)
    with distant_s3(WAIT_MS) as far:
        place = small_table(far)
        return [_measured(name, place, chains[name]) for name in OPERATIONS]


def _measured(name: str, place: Location, chain: Chain) -> Measure:
    began = perf_counter()
    table = Table(place.uri, place.options)
    if name != "open":
        began = perf_counter()
    OPERATIONS[name](table)
    seconds = perf_counter() - began
    bound = Bound(SECONDS_MAX[name]) if name in SECONDS_MAX else None
    words = f"{len(chain.requests)} requests, {chain.depth} deep; {WAIT_MS} ms each"
    return Measure(name, seconds, "seconds", bound, words, Rounds({OURS: (seconds,)}, 0.0))


def _touched() -> list[dict[str, object]]:
    """Ten rows, five of each slice."""
    return [_row(number * ROWS // 5, 2) for number in range(10)]


def _row(number: int, ts: int) -> dict[str, object]:
    return {"id": f"k{number}", "ts": ts, "v": number}
