"""Compaction by us and by Java on the same tables: plans of either are carried out by the other."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import RunLimits, execute, run_pending
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.timeline.instants.instant import Action
from tests.interop.judges import JavaJudge
from tests.interop.stages import Stage
from tests.writing.model import Kind
from tests.writing.shapes import Shape

SHAPES = (
    Shape("mor"),
    Shape("mor", is_partitioned=False, is_event_time=False),
    Shape("mor", index="RECORD_INDEX"),
    # New rows go to logs without a base file.
    Shape("mor", has_metadata=False, index="BUCKET"),
)
KINDS: tuple[Kind, ...] = ("upsert", "upsert", "delete", "upsert")


@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_java_reads_what_we_compacted_and_compacts_on(
    one: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    stage = Stage(one, java, tmp_path / "table")
    stage.write(*KINDS)
    plan = schedule(stage.context, COMPACTION, PlanRequest())
    assert plan
    execute(stage.context, COMPACTION, plan.instant)
    assert stage.logs() == 0
    stage.agree("our compaction")
    stage.agreement.check_truth()
    stage.java_writes()
    stage.java.compact()
    assert stage.logs() == 0
    stage.write("upsert")
    stage.agreement.check_snapshot(stage.story.model.contents(), "we went on after Java")


def test_we_carry_out_a_plan_of_java(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(SHAPES[0], java, tmp_path / "table")
    stage.write(*KINDS)
    stage.java.sql(
        "CALL run_compaction(op => 'schedule', table => 't')",
        compact__inline__max__delta__commits="1",
    )
    # Its logs are no part of the plan.
    stage.java_writes()
    assert run_pending(stage.context, COMPACTION, RunLimits()).executions
    assert stage.logs() > 0
    stage.agree("Java's plan by us")
    stage.agreement.check_truth()


def test_java_carries_out_a_plan_of_ours(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(SHAPES[2], java, tmp_path / "table")
    stage.write(*KINDS)
    plan = schedule(stage.context, COMPACTION, PlanRequest(max_file_groups=2, cancellable=True))
    assert plan
    stage.write("upsert")
    stage.java.sql(f"CALL run_compaction(op => 'run', table => 't', timestamp => {plan.instant})")
    assert not Table(str(tmp_path / "table")).timeline().pending((Action.COMPACTION,))
    stage.agree("our plan by Java")
    stage.agreement.check_truth()
