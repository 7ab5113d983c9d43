"""Log compaction by either engine: the other reads the same rows, and carries the plans out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.transaction.state.context import Context
from tests.engine.services.service_table import row
from tests.interop.agreement import Agreement
from tests.interop.contexts import local_context
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

THRESHOLD = "hoodie.log.compaction.blocks.threshold"
PARTITIONED = Shape("mor")
BUCKETS = Shape("mor", is_partitioned=False, is_event_time=False, index="BUCKET")
OPTIONS = {
    **SMALL,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.log.compaction.enable": "true",
    "hoodie.table.ordering.fields": "ts",
    THRESHOLD: "3",
}


class Subject:
    """A table, its model, and both engines."""

    def __init__(self, java: JavaJudge, path: Path, shape: Shape) -> None:
        self.java, self.path = java, path
        self.table = shape.create(str(path))
        self.model = shape.model()
        self.step = 0
        self.writer = JavaWriter(java, path)
        self.agreement = Agreement(java, path)

    def write(self, count: int) -> None:
        for write in self._writes(count):
            carry_out(self.table, write)

    def write_by_java(self, count: int) -> None:
        for write in self._writes(count):
            self.writer.carry_out(write)

    def _writes(self, count: int) -> Iterator[Write]:
        """Writes that go to logs: new versions of rows, some of them late, and deletes."""
        for _ in range(count):
            self.step += 1
            rows = [row(f"k{n}", 10 * self.step - 15 * (n == 4), "abc"[n % 3]) for n in range(9)]
            live = [one for one in rows if self.model.key(one) in self.model.rows]
            write = Write("upsert", tuple(live or rows))
            if self.step % 4 == 3:
                write = Write("delete", (live[self.step % len(live)],))
            self.model.apply(write)
            yield write

    def context(self) -> Context:
        return local_context(self.path, {THRESHOLD: 3})

    def plan(self) -> str:
        answer = schedule(self.context(), LOG_COMPACTION, PlanRequest())
        assert isinstance(answer, Scheduled), answer
        return answer.instant

    def carry_out(self, instant: str) -> None:
        execute(self.context(), LOG_COMPACTION, instant)

    def by_java(self, instant: str | None = None, *, executes: bool = True) -> str:
        found: str | None = self.java.ask(
            "log_compaction",
            table=str(self.path),
            name=self.table.config.name,
            options=OPTIONS,
            instant=instant,
            executes=executes,
        )
        assert found is not None
        return found

    def check(self, after: str) -> None:
        self.agreement.check(self.model.contents(), after)

    def commit_times(self) -> set[str]:
        """The instants that rows say they were written by."""
        return set(self.table.read_arrow().column("_hoodie_commit_time").to_pylist())


def subject_of(java: JavaJudge, path: Path, shape: Shape) -> Subject:
    """A table of a shape with a few logs."""
    made = Subject(java, path / "table", shape)
    made.write(5)
    return made


def test_java_reads_what_we_compacted_and_goes_on(java: JavaJudge, tmp_path: Path) -> None:
    subject = subject_of(java, tmp_path, PARTITIONED)
    subject.carry_out(subject.plan())
    subject.check("our log compaction")
    subject.agreement.check_truth()
    subject.write_by_java(2)
    subject.check("writes by Java")
    subject.writer.compact()
    subject.check("a compaction by Java")
    subject.write(1)
    subject.check("a write of ours")
    subject.agreement.check_truth()


def test_each_carries_out_the_plans_of_the_other(java: JavaJudge, tmp_path: Path) -> None:
    subject = subject_of(java, tmp_path, BUCKETS)
    subject.by_java(subject.plan())
    subject.check("our plan by Java")
    subject.write(4)
    subject.carry_out(subject.by_java(executes=False))
    subject.check("Java's plan by us")
    subject.write_by_java(1)
    subject.check("a write by Java")
    subject.agreement.check_truth()
    assert not Table(str(subject.path)).timeline().pending()


def test_java_has_its_records_say_that_the_log_compaction_wrote_them(
    java: JavaJudge, tmp_path: Path
) -> None:
    subject = subject_of(java, tmp_path, PARTITIONED)
    before = subject.commit_times()
    subject.carry_out(subject.plan())
    assert subject.commit_times() == before
    subject.write(4)
    theirs = subject.by_java()
    assert theirs in subject.commit_times()


def test_java_plans_a_compaction_of_what_a_log_compaction_is_about(
    java: JavaJudge, tmp_path: Path
) -> None:
    subject = subject_of(java, tmp_path, PARTITIONED)
    ours = subject.plan()
    subject.writer.sql(
        "CALL run_compaction(op => 'schedule', table => 't')",
        compact__inline__max__delta__commits="1",
    )
    with pytest.raises(Conflict) as refused:
        subject.carry_out(ours)
    assert refused.value.code == "plan_conflict"
    subject.writer.sql("CALL run_compaction(op => 'run', table => 't')")
    subject.check("a compaction by Java")
