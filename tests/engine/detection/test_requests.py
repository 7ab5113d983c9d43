"""What early conflict detection costs a write: requests, however many files it makes."""

from collections.abc import Iterator
from time import time

import pyarrow as pa
import pytest

from bench.remote_requests import DistantS3, distant_s3
from lakewarden import Table
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, Strategy
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.run.background import ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage

SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
DIRECT = {"hoodie.write.markers.type": "DIRECT"}
LISTED = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
GROUPS = 12
MORE_MAX = 5


@pytest.fixture(scope="module")
def s3() -> Iterator[DistantS3]:
    with distant_s3() as server:
        yield server


def rows(value: int) -> pa.Table:
    ids = [f"k{number}" for number in range(GROUPS)]
    return pa.table({"id": ids, "p": ids, "v": pa.array([value] * GROUPS, pa.int64())})


def requests(s3: DistantS3, **options: str) -> int:
    """Those of the second write to a table of its own, so that all have the same history."""
    place = s3.fresh_place()
    schema = rows(0).schema
    Table.create(place.uri, schema, ["id"], partition=["p"], storage_options=place.options)
    Table(place.uri, place.options).upsert(rows(0))
    # However slow the machine is, no second passes.
    ports = Ports(clock=ManualClock(round(time() * 1000)), background=ManualBackground())
    table = Table.on(open_storage(place), ports)
    s3.asked()
    table.upsert(rows(1), options={**SEVERAL, **options})
    return len(s3.asked())


@pytest.fixture(scope="module")
def without(s3: DistantS3) -> int:
    return requests(s3, **DIRECT)


@pytest.mark.parametrize("strategy", [Strategy.SIMPLE, Strategy.TRANSACTIONAL])
def test_a_write_that_takes_part_makes_a_few_more_requests(
    s3: DistantS3, without: int, strategy: Strategy
) -> None:
    on = {DETECTION.key: "true", STRATEGY.key: strategy.value, **DIRECT}
    assert without < requests(s3, **on) <= without + MORE_MAX


def test_with_one_list_of_markers_it_makes_fewer(s3: DistantS3, without: int) -> None:
    assert requests(s3, **{DETECTION.key: "true", **LISTED}) < without
