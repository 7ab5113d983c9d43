"""Cancelled plans as Java sees them: it reads on, finds all in order, and runs the service anew."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.cancel.cancel import Cleanup, Ending, cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context
from tests.interop.agreement import Agreement
from tests.interop.java_writes import JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Story
from tests.writing.shapes import Shape, carry_out


class Stage:
    """A table that has seen some writes, and both engines on it."""

    def __init__(self, java: JavaJudge, path: Path) -> None:
        shape = Shape("mor", index="RECORD_INDEX")
        self.path = path
        shape.create(str(path))
        self.java = JavaWriter(java, path)
        self.agreement = Agreement(java, path)
        self.story = Story(5, shape.model(), kinds=("upsert",))
        for _ in range(3):
            self.write()
        storage, ports, settings = open_storage(Location(str(path))), Ports(), Settings()
        self.context = Context(storage, open_lock(storage, settings, ports), ports, settings)

    def write(self, *, by_java: bool = False) -> None:
        write = self.story.write("upsert")
        self.story.model.apply(write)
        if by_java:
            self.java.carry_out(write)
        else:
            carry_out(Table(str(self.path)), write)

    def pending(self) -> str:
        (plan,) = Table(str(self.path)).timeline().pending()
        return plan.requested

    def assert_cancelled(self, plan: str) -> None:
        answer = cancel(self.context, plan, "in the way", force=True)
        assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
        assert not Table(str(self.path)).timeline().pending()
        self.agreement.check(self.story.model.contents(), "the cancel")
        self.agreement.check_truth()

    def goes_on(self) -> None:
        """Both write, and Java compacts."""
        self.write(by_java=True)
        self.java.compact()
        self.agreement.check(self.story.model.contents(), "Java's compaction")
        self.write()
        self.java.clean()
        self.agreement.check(self.story.model.contents(), "all")
        self.agreement.check_truth()


def test_java_goes_on_where_a_compaction_of_ours_was_begun_and_cancelled(
    java: JavaJudge, tmp_path: Path
) -> None:
    stage = Stage(java, tmp_path / "table")
    scheduled = schedule(stage.context, COMPACTION, PlanRequest(cancellable=True))
    assert isinstance(scheduled, Scheduled), scheduled
    attempt = start(stage.context, scheduled.instant).attempt
    assert attempt is not None
    plan = stage.context.storage.read(f".hoodie/timeline/{scheduled.instant}.compaction.requested")
    COMPACTION.work(stage.context, attempt, plan)
    attempt.stop()
    stage.assert_cancelled(scheduled.instant)
    stage.goes_on()


# Its first clustering meets a JVM that has compiled nothing of it yet.
@pytest.mark.timeout(600)
def test_java_goes_on_where_its_own_plans_were_cancelled(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(java, tmp_path / "table")
    stage.java.sql(
        "CALL run_compaction(op => 'schedule', table => 't')",
        compact__inline__max__delta__commits="1",
    )
    stage.assert_cancelled(stage.pending())
    stage.write()
    stage.java.sql("CALL run_clustering(table => 't', op => 'schedule', order => 'name')")
    stage.assert_cancelled(stage.pending())
    stage.goes_on()
    stage.java.cluster()
    stage.agreement.check(stage.story.model.contents(), "Java's clustering")
    stage.agreement.check_truth()
