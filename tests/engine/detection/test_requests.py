"""What early conflict detection costs a write: requests, however many files it makes."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import time

import pyarrow as pa
import pytest

from bench.remote_requests import DistantS3, distant_s3
from lakewarden import Table
from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.conflicts.group_hashes import NAMES_MAX, put_hashes
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, Strategy
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER
from lakewarden.engine.transaction.state.markers import MarkerType
from lakewarden.engine.transaction.state.settings import MARKERS_BOTH, MARKERS_TYPE

SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
MARKERS = (None, *MarkerType, MARKERS_BOTH)
GROUPS = 12
MORE_MAX = 5


def rows(value: int) -> pa.Table:
    ids = [f"k{number}" for number in range(GROUPS)]
    return pa.table({"id": ids, "p": ids, "v": pa.array([value] * GROUPS, pa.int64())})


def ports() -> Ports:
    """However slow the machine is, no second passes."""
    clock = ManualClock(round(time() * 1000))
    return Ports(clock=clock, background=ManualBackground(), executor=LocalExecutor(1))


def options(strategy: Strategy | None, markers: str | None) -> dict[str, str]:
    marked = {} if markers is None else {MARKERS_TYPE.key: markers}
    on = {} if strategy is None else {DETECTION.key: "true", STRATEGY.key: strategy.value}
    return {**SEVERAL, **marked, **on}


class LocalTables:
    """Tables on this machine, each of which has one write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun = folder / "begun"
        Table.create(str(self._begun), rows(0).schema, ["id"], partition=["p"])
        Table(str(self._begun)).upsert(rows(0))
        # Each combination is asked for as often as others are held against it.
        self.calls = cache(self._calls)

    def _calls(self, strategy: Strategy | None, markers: str | None) -> int:
        """Those of the second write to a table."""
        path = self._folder / f"{strategy}-{markers}"
        shutil.copytree(self._begun, path)
        storage = FaultyStorage(open_storage(Location(str(path))), FaultPlan())
        Table.on(storage, ports()).upsert(rows(1), options(strategy, markers))
        return len(storage.calls)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> LocalTables:
    return LocalTables(tmp_path_factory.mktemp("requests"))


@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("strategy", Strategy)
def test_a_write_that_takes_part_makes_a_few_more_calls(
    local: LocalTables, strategy: Strategy, markers: str | None
) -> None:
    without = local.calls(None, markers)
    assert without < local.calls(strategy, markers) <= without + MORE_MAX


def test_of_many_file_groups_it_announces_the_hashes_by_one_call_and_a_filter_by_another() -> None:
    storage = FaultyStorage(fresh_memory_storage(), FaultPlan())
    groups = [FileGroupId("p", str(number)) for number in range(NAMES_MAX + 1)]
    put_hashes(storage, "20261120093000000", groups, ConflictStrategy())
    assert len(storage.calls) == 1
    put_hashes(storage, "20261120093000000", groups, ConflictStrategy(), has_bloom=True)
    assert len(storage.calls) == 3
    # Where Java looks for markers a strange file would keep it from rolling back.
    assert all(call.path.startswith(BEATS_FOLDER) for call in storage.calls)


def test_with_one_list_of_markers_it_makes_fewer(local: LocalTables) -> None:
    listed = local.calls(Strategy.ASYNC, MarkerType.TIMELINE_SERVER_BASED)
    assert listed < local.calls(None, MarkerType.DIRECT)


@pytest.fixture(scope="module")
def s3() -> Iterator[DistantS3]:
    with distant_s3() as server:
        yield server


def requests(s3: DistantS3, strategy: Strategy | None, markers: str | None = None) -> int:
    """Those of the second write to a table of its own, so that all have the same history."""
    place = s3.fresh_place()
    schema = rows(0).schema
    Table.create(place.uri, schema, ["id"], partition=["p"], storage_options=place.options)
    Table(place.uri, place.options).upsert(rows(0))
    table = Table.on(open_storage(place), ports())
    s3.asked()
    table.upsert(rows(1), options(strategy, markers))
    return len(s3.asked())


@pytest.fixture(scope="module")
def without(s3: DistantS3) -> int:
    return requests(s3, None)


def test_on_an_object_store_it_makes_a_few_more_requests(s3: DistantS3, without: int) -> None:
    # Of all strategies this one makes the most.
    assert without < requests(s3, Strategy.TRANSACTIONAL) <= without + MORE_MAX


def test_on_an_object_store_it_makes_fewer_with_one_list_of_markers(
    s3: DistantS3, without: int
) -> None:
    assert requests(s3, Strategy.ASYNC, MarkerType.TIMELINE_SERVER_BASED) < without
