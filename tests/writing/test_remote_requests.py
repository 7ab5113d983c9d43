"""Requests of ten operations to an object store, and how many of them wait for each other."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from bench.remote_requests import OPERATIONS, Chain, counted, distant_s3
from lakewarden import Table
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.testing.faults import FaultyStorage

# Requests, and the longest chain of them.
MOST = {
    "open": (1, 1),
    "schema": (3, 2),
    "read": (15, 5),
    "lookup": (21, 8),
    "upsert": (60, 30),
    "insert": (59, 33),
    "delete": (63, 32),
    "compaction": (106, 69),
    "clean": (24, 17),
    "show_plans": (3, 2),
}


@pytest.fixture(scope="module")
def chains() -> Iterator[Mapping[str, Chain]]:
    with distant_s3() as s3:
        yield counted(s3)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_makes_no_more_requests_than_it_did(
    chains: Mapping[str, Chain], operation: str
) -> None:
    requests = chains[operation].requests
    assert len(requests) <= MOST[operation][0], "\n".join(requests)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_more_requests_wait_for_each_other_than_did(
    chains: Mapping[str, Chain], operation: str
) -> None:
    assert chains[operation].depth <= MOST[operation][1]


class _Calls:
    """The calls that a storage in memory gets, in place of requests."""

    def __init__(self) -> None:
        self.chain = Chain(self)
        self.storage = FaultyStorage(fresh_memory_storage(), concurrency=self.chain)
        self._told = 0

    def asked(self) -> list[str]:
        calls = self.storage.calls[self._told :]
        self._told += len(calls)
        return [str(call) for call in calls if call.operation != "close"]


def small_upserts(count: int, **settings: object) -> list[tuple[int, int]]:
    """The calls of each of so many upserts by one `Table`, and the longest chain of them."""
    calls = _Calls()
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    place = calls.storage.location.uri
    Table.create(place, schema, ["id"], type="mor", storage=calls.storage, properties=settings)
    table = Table.on(calls.storage, Ports(executor=calls.chain))
    counts = []
    for number in range(count):
        calls.chain.begin()
        table.upsert([{"id": f"k{row}", "v": number} for row in range(10)])
        calls.chain.count()
        counts.append((len(calls.chain.requests), calls.chain.depth))
    return counts


def test_small_upserts_make_the_same_calls_however_many_logs_there_are() -> None:
    counts = small_upserts(15, **{"hoodie.metadata.compact.max.delta.commits": 100})
    assert counts[-1] == counts[4]


def test_where_no_service_is_due_asking_them_all_makes_few_calls_more() -> None:
    services = ("hoodie.clean.automatic", "hoodie.archive.automatic", "hoodie.compact.inline")
    retained = {"hoodie.clean.commits.retained": 4}
    counts = small_upserts(19, **dict.fromkeys(services, True), **retained)
    # After most writes none is due.
    assert sorted(counts)[9] <= (50, 30)
    assert min(counts[-3:]) <= (50, 30)
