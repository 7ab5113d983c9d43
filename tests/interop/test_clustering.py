"""Clustering by either engine: the other reads equal rows, goes on, and carries the plans out."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import kept_settings, load_config
from lakewarden.engine.transaction.state.context import Context
from tests.interop.agreement import Agreement
from tests.interop.java_writes import JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Story
from tests.writing.shapes import Shape, carry_out

SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
COPIED = {"lakewarden.clustering.copied_rows_min": "1"}
ZORDER = {SORT: "ts,name", LAYOUT: "ZORDER"}


class Subject:
    """A table with many small files, its model, and both engines."""

    def __init__(self, java: JavaJudge, path: Path, shape: Shape) -> None:
        self.path = path
        self.table = shape.create(str(path))
        self.story = Story(11, shape.model(), kinds=("upsert", "bulk_insert", "delete"))
        self.java = JavaWriter(java, path)
        self.agreement = Agreement(java, path)
        for kind in ("bulk_insert", "upsert", "bulk_insert", "delete", "bulk_insert"):
            write = self.story.write(kind)
            self.story.model.apply(write)
            carry_out(self.table, write)

    def context(self, arguments: Mapping[str, str]) -> Context:
        storage, ports = open_storage(Location(str(self.path))), Ports()
        kept = kept_settings(load_config(storage).properties)
        settings = Settings.of(arguments=arguments, table=kept)
        return Context(storage, open_lock(storage, settings, ports), ports, settings)

    def plan(self, arguments: Mapping[str, str]) -> str:
        answer = schedule(self.context(arguments), CLUSTERING, PlanRequest())
        assert isinstance(answer, Scheduled), answer
        return answer.instant

    def cluster(self, arguments: Mapping[str, str]) -> None:
        execute(self.context(arguments), CLUSTERING, self.plan(arguments))

    def carry_out_pending(self, arguments: Mapping[str, str]) -> None:
        context = self.context(arguments)
        for instant in pending_plans(context, CLUSTERING):
            execute(context, CLUSTERING, instant)

    def write_by_java(self) -> None:
        write = self.story.write("upsert")
        self.story.model.apply(write)
        self.java.carry_out(write)

    def check_snapshot(self, after: str) -> None:
        self.agreement.check_snapshot(self.story.model.contents(), after)

    def check(self, after: str) -> None:
        self.agreement.check(self.story.model.contents(), after)


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        (Shape("cow"), COPIED),
        (Shape("mor", index="RECORD_INDEX"), COPIED),
        (Shape("cow", is_partitioned=False, index="BLOOM"), ZORDER),
    ],
    ids=["copied", "copied with a record index", "in z-order"],
)
def test_java_goes_on_after_a_clustering_of_ours(
    java: JavaJudge, tmp_path: Path, table: Shape, arguments: dict[str, str]
) -> None:
    subject = Subject(java, tmp_path / "table", table)
    subject.cluster(arguments)
    subject.check("our clustering")
    subject.agreement.check_truth()
    subject.write_by_java()
    subject.java.cluster()
    subject.check_snapshot("Java wrote and clustered on")
    subject.agreement.check_truth()


def test_a_plan_of_java_is_carried_out_by_us(java: JavaJudge, tmp_path: Path) -> None:
    subject = Subject(java, tmp_path / "table", Shape("mor"))
    subject.java.sql("CALL run_clustering(table => 't', op => 'schedule', order => 'name')")
    subject.carry_out_pending({})
    subject.check_snapshot("we carried Java's plan out")
    subject.agreement.check_truth()


def test_files_of_java_are_copied(java: JavaJudge, tmp_path: Path) -> None:
    subject = Subject(java, tmp_path / "table", Shape("cow", is_partitioned=False))
    subject.java.cluster()
    write = subject.story.write("bulk_insert")
    subject.story.model.apply(write)
    subject.java.carry_out(write)
    subject.cluster(COPIED)
    subject.check_snapshot("we copied files of Java")
    subject.agreement.check_truth()


def test_a_plan_of_ours_is_carried_out_by_java(java: JavaJudge, tmp_path: Path) -> None:
    subject = Subject(java, tmp_path / "table", Shape("mor"))
    instant = subject.plan({SORT: "name"})
    subject.java.sql(f"CALL run_clustering(table => 't', op => 'execute', instants => '{instant}')")
    assert not pending_plans(subject.context({}), CLUSTERING)
    subject.check_snapshot("Java carried our plan out")
