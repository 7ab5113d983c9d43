"""Tasks of services on Spark: results in order, errors as raised, jobs that are cancelled."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.spark.service_tasks import SparkExecutor, packed, unpacked
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context
from tests.engine.services.service_table import contents, inserted, updated
from tests.rfc.actors import until
from tests.small_session import status_of
from tests.writing.model import contents_of
from tests.writing.shapes import Shape, carry_out

pytestmark = pytest.mark.xdist_group("spark")

HISTORY = (inserted(6), updated(6, ts=4))


@dataclass(frozen=True)
class Touching:
    """Leaves a file named after its task."""

    storage: Storage

    def __call__(self, task: str) -> str:
        self.storage.put(task, b"")
        return task.upper()


@dataclass(frozen=True)
class Refusing:
    def __call__(self, task: int) -> int:
        raise Conflict("held", what=f"Task {task} was refused.", why="So it is.", now="Wait.")


def sleeping(place: FencedTaskContext, seconds: float) -> float:
    place.storage.put("begun", b"")
    time.sleep(seconds)
    return seconds


def context_of(folder: Path, spark: SparkSession | None = None) -> Context:
    storage, settings = open_storage(Location(str(folder))), Settings()
    ports = Ports() if spark is None else Ports(executor=SparkExecutor(spark, "compaction"))
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = Shape("mor").create(str(tmp_path / "t"))
    for write in HISTORY:
        carry_out(made, write)
    return tmp_path / "t"


def test_results_come_in_the_order_of_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    executor = SparkExecutor(spark, "names")
    assert executor.workers == 2
    touching = Touching(open_storage(Location(str(tmp_path))))
    assert list(executor.map(touching, ["c", "a", "b"])) == ["C", "A", "B"]
    assert {path.name for path in tmp_path.iterdir()} >= {"a", "b", "c"}
    assert list(executor.map(touching, [])) == []


def test_an_error_comes_as_it_was_raised(spark: SparkSession) -> None:
    with pytest.raises(Conflict, match="Task 7 was refused"):
        list(SparkExecutor(spark, "refusing").map(Refusing(), [7]))


def test_a_storage_travels_as_its_location(tmp_path: Path) -> None:
    storage = open_storage(Location(str(tmp_path)))
    found = unpacked(packed([storage, 1]))
    assert isinstance(found, list)
    assert found[0].location == storage.location


def test_the_memory_of_this_process_does_not_travel() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        packed(fresh_memory_storage())
    assert refusal.value.code == "unsupported_spark_storage"


def test_workers_compact_a_table(spark: SparkSession, table: Path) -> None:
    plan = schedule(context_of(table), COMPACTION, PlanRequest())
    assert plan
    execute(context_of(table, spark), COMPACTION, plan.instant)
    found = Table(str(table))
    assert contents_of(found.read_arrow()) == contents(Shape("mor"), *HISTORY)
    slices = found.file_slices()
    assert not any(slice_.log_files for slice_ in slices)
    # Each try of Spark at a task names its files differently.
    tokens = [slice_.base_file.write_token for slice_ in slices if slice_.base_file]
    assert len({token.split("-")[1] for token in tokens}) == len(slices)


def test_a_cancelled_attempt_has_its_jobs_cancelled(spark: SparkSession, table: Path) -> None:
    plan = schedule(context_of(table), COMPACTION, PlanRequest(cancellable=True))
    assert plan
    context = context_of(table)
    attempt = start(context, plan.instant).attempt
    assert attempt is not None
    with attempt:
        place = FencedTaskContext.here(context.storage, attempt)
        results = SparkExecutor(spark, "slow").map(FencedTask(place, sleeping), [0.0, *[300.0] * 2])
        cancel(context_of(table), plan.instant, "It takes too long.")
        began = time.monotonic()
        with pytest.raises(Conflict, match="It takes too long"):
            list(results)
    assert time.monotonic() - began < 60
    until(lambda: status_of(spark).getActiveJobsIds() == [])
