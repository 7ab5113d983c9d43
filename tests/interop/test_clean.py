"""Cleans by us and by Java on the same tables: plans of either are carried out by the other."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import clean as payload
from lakewarden.engine.services.clean.draft import CleanRequest, content_of, draft_clean
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.services.retention.clean_plan import Cleaned
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import Ending
from lakewarden.engine.transaction.state.context import load_for_writing
from tests.canonical import canonical_rows, difference
from tests.engine.services.clean.golden_cleans import context_of
from tests.golden_tables import GoldenTable
from tests.interop.clean_cases import SHAPES, cleaning
from tests.interop.judges import JavaJudge
from tests.interop.stages import Stage
from tests.writing.model import Write
from tests.writing.shapes import Shape


def cleaned(stage: Stage) -> Cleaned:
    return clean(cleaning(stage.context))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_java_goes_on_after_our_clean_and_we_after_javas(
    one: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    stage = Stage(one, java, tmp_path / "table")
    stage.write("upsert", "upsert")
    drop(stage, "c")
    stage.write("upsert", "delete", "upsert")
    if one.type == "mor":
        for _ in range(2):
            plan = schedule(stage.context, COMPACTION, PlanRequest())
            assert isinstance(plan, Scheduled)
            execute(stage.context, COMPACTION, plan.instant)
            stage.write("upsert")
    assert cleaned(stage).files_deleted > 0
    stage.agreement.check_snapshot(stage.story.model.contents(), "our clean")
    stage.java_writes()
    stage.java.clean()
    stage.write("upsert", "upsert")
    assert cleaned(stage).files_deleted > 0 or one.type == "mor"
    stage.agree("cleans in turns")
    stage.agreement.check_truth()


def drop(stage: Stage, partition: str) -> None:
    write = Write("delete_partitions", partitions=(partition,))
    stage.story.model.apply(write)
    stage.table.delete_partitions([f"p={partition}"])


@pytest.mark.timeout(600)
def test_java_carries_out_a_clean_that_we_have_left(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(SHAPES[0], java, tmp_path / "table")
    stage.write("upsert", "upsert", "upsert", "upsert")
    context = cleaning(stage.context)
    drafted = draft_clean(
        context, load_for_writing(context), CleanRetention(commits=1), CleanRequest()
    )
    assert drafted.files
    plan = payload.encode_plan(content_of(context.storage, drafted))
    publish(context, Action.CLEAN, plan, claims=False)
    stage.java.clean()
    there = {path.name for path in (tmp_path / "table").rglob("*.parquet")}
    assert not there & {file.name for file in drafted.files}
    stage.agree("our clean, carried out by Java")
    stage.write("upsert")
    assert cleaned(stage).finished == ()


@pytest.mark.timeout(600)
def test_we_carry_out_a_clean_that_java_has_left(java: JavaJudge, golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_clean_requested")
    table = Table(str(path))
    before = canonical_rows(table.read_arrow())
    (finished,) = clean(context_of(path)).finished
    assert finished.files_deleted == 6
    assert not difference(java.read(path), before)
    assert not difference(java.read(path, metadata=False), before)
    assert java.validate(path) == {}
    assert len(java.timeline(path)["active"]) == len(table.timeline().instants)


@pytest.mark.timeout(600)
def test_java_cleans_anew_where_its_clean_was_cancelled(
    java: JavaJudge, golden_copy: GoldenTable
) -> None:
    path = golden_copy("cow_clean_requested")
    table = Table(str(path))
    (plan,) = table.timeline().pending((Action.CLEAN,))
    before = canonical_rows(table.read_arrow())
    assert table.cancel(plan.requested).outcome is Ending.CANCELLED
    assert not difference(java.read(path), before)
    java.sql(path, "CALL run_clean(table => 't', retain_commits => 1)")
    cleans = table.timeline().completed((Action.CLEAN,))
    assert cleans[-1].requested > plan.requested
    assert not difference(java.read(path), before)
    assert java.validate(path) == {}
