"""The services at the front door: what callers pass in, right and wrong, and what they get back."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.engine.services.planning.plan_request import Refusal
from lakewarden.engine.transaction.cancel.cancel import Ending
from lakewarden.table_service_handle import Plan, Preview
from tests.engine.services.service_table import COW, MOR, inserted, updated
from tests.writing.shapes import Shape, carry_out

UNKNOWN = "20200101000000000"


def table_with_logs(folder: Path, shape: Shape = MOR) -> Table:
    table = shape.create(str(folder / "table"))
    for write in (inserted(), updated(ts=2), updated(ts=3)):
        carry_out(table, write)
    return table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return table_with_logs(tmp_path)


def a_plan(done: Plan | Preview | Refusal) -> Plan:
    assert isinstance(done, Plan), done
    return done


def test_a_plan_tells_what_it_is_and_what_becomes_of_it(table: Table) -> None:
    rows = table.read_arrow().sort_by("id")
    plan = a_plan(table.compaction.schedule(cancellable=True))
    assert plan.cancellable
    assert plan.state == "requested"
    assert plan.partitions == table.partitions()
    assert [one.instant for one in table.compaction.pending()] == [plan.instant]
    done = plan.run()
    assert done.instants == (plan.instant,)
    assert plan.state == "completed"
    assert table.read_arrow().sort_by("id").select(["id", "v"]) == rows.select(["id", "v"])
    assert not any(slice_.log_files for slice_ in table.file_slices())


def test_a_second_run_of_a_plan_gives_what_it_has_come_to(table: Table) -> None:
    plan = a_plan(table.compaction.schedule())
    first, second = plan.run(), plan.run()
    assert second.executions[0].was_completed_before
    assert second.executions[0].completed == first.executions[0].completed


def test_a_cancelled_plan_is_gone_and_its_partitions_are_in_the_next_one(table: Table) -> None:
    plan = a_plan(table.compaction.schedule(cancellable=True))
    answer = plan.cancel("something else comes first")
    assert answer.outcome is Ending.CANCELLED
    assert answer.handed_back == plan.partitions
    assert plan.state == "rolled back"
    assert plan.cancel().outcome is Ending.ALREADY_CANCELLED
    with pytest.raises(InvalidRequest) as refused:
        plan.run()
    assert refused.value.code == "unknown_plan"
    assert a_plan(table.compaction.schedule()).partitions == plan.partitions


def test_what_must_not_be_cancelled_is_refused_until_forced(table: Table) -> None:
    plan = a_plan(table.compaction.schedule(cancellable=False))
    with pytest.raises(InvalidRequest) as refused:
        table.cancel(plan.instant)
    assert refused.value.code == "not_cancellable"
    assert table.cancel(plan.instant, dry_run=True).outcome is Ending.REFUSED
    assert plan.state == "requested"
    assert table.cancel(plan.instant, "the disk is full", force=True).outcome is Ending.CANCELLED


def test_a_dry_run_changes_nothing(table: Table) -> None:
    before = table.timeline().instants
    preview = table.compaction.schedule(dry_run=True)
    assert isinstance(preview, Preview)
    assert preview.partitions == table.partitions()
    assert isinstance(table.clustering.schedule_and_run(dry_run=True), Preview)
    assert table.compaction.run(dry_run=True).left == ()
    table.clean(dry_run=True)
    table.archive(dry_run=True)
    table.restore(table.timeline().completed()[0].requested, dry_run=True)
    assert table.timeline().instants == before


def test_nothing_to_do_is_an_answer_with_a_reason(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path, COW)
    refusal = table.compaction.schedule()
    assert isinstance(refusal, Refusal)
    assert not refusal
    assert refusal.reason == "wrong_table_type"
    assert table.compaction.run().refusal is not None
    assert table.compaction.schedule_and_run().refusal is not None


@pytest.mark.parametrize("limit", [{"max_bytes": 0}, {"max_file_groups": -1}])
def test_limits_that_make_no_sense_are_refused(table: Table, limit: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        table.compaction.schedule(**limit)  # type: ignore[arg-type]
    assert refused.value.code == "bad_argument"


@pytest.mark.parametrize(
    ("call", "misspelt", "meant"),
    [
        ("compaction.schedule", "max_file_gruops", "max_file_groups"),
        ("compaction.schedule_and_run", "deadlin", "deadline"),
        ("compaction.run", "dedline", "deadline"),
        ("clean", "max_comits", "max_commits"),
        ("compaction.schedule", "strateg", "strategy"),
    ],
)
def test_a_misspelt_parameter_is_recognised(
    table: Table, call: str, misspelt: str, meant: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"Did you mean '{meant}'") as refused:
        attrgetter(call)(table)(**{misspelt: 3})
    assert refused.value.code == "unknown_option"


def test_plans_are_run_oldest_first_up_to_a_limit(table: Table) -> None:
    first = a_plan(table.compaction.schedule(max_file_groups=1))
    second = a_plan(table.compaction.schedule())
    done = table.compaction.run(limit=1)
    assert done.instants == (first.instant,)
    assert done.left == (second.instant,)
    assert table.compaction.run().instants == (second.instant,)


def test_an_unknown_instant_is_refused_by_every_call(table: Table) -> None:
    for call in (
        lambda: table.compaction.run(UNKNOWN),
        lambda: table.compaction.plan(UNKNOWN),
        lambda: table.cancel(UNKNOWN),
        lambda: table.savepoint(UNKNOWN),
        lambda: table.delete_savepoint(UNKNOWN),
        lambda: table.restore(UNKNOWN),
    ):
        with pytest.raises((InvalidRequest, Conflict)):
            call()


@pytest.mark.parametrize("instant", [None, "", 1.5, True, b"20261118101500123"])
def test_what_is_no_instant_is_refused(table: Table, instant: Any) -> None:
    for call in (
        lambda: table.cancel(instant),
        lambda: table.restore(instant),
        lambda: table.rollback(instant),
        lambda: table.delete_savepoint(instant),
        lambda: table.explain_plan(instant),
        lambda: table.delete_markers(instant),
        lambda: table.reset_plan(instant),
        lambda: table.prune_plan(instant),
        lambda: table.compaction.plan(instant),
    ):
        with pytest.raises(InvalidRequest) as refused:
            call()
        assert refused.value.code == "bad_argument"


def test_an_instant_may_be_a_number_of_its_digits(table: Table) -> None:
    plan = a_plan(table.compaction.schedule(cancellable=True))
    assert table.compaction.plan(int(plan.instant)).instant == plan.instant  # type: ignore[arg-type]
    assert table.cancel(int(plan.instant)).instant == plan.instant  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [["a"], "a=b", 3])
def test_options_that_are_no_names_with_values_are_refused(table: Table, options: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        table.clean(options=options)
    assert refused.value.code == "bad_options"


def test_an_unknown_option_names_the_nearest_one(table: Table) -> None:
    with pytest.raises(InvalidRequest, match=r"target\.io|target_io"):
        table.compaction.schedule(target_ioo=3)


def test_a_savepoint_is_what_a_restore_goes_back_to(table: Table) -> None:
    rows = table.read_arrow().sort_by("id")
    saved = table.savepoint(comment="before the change")
    carry_out(table, updated(ts=9))
    restored = table.restore(saved.instant)
    assert len(restored.undone) == 1
    assert table.read_arrow().sort_by("id") == rows
    assert [one.comment for one in table.savepoints()] == ["before the change"]
    table.delete_savepoint(saved.instant)
    assert table.savepoints() == ()


def test_answers_can_be_read(table: Table) -> None:
    plan = a_plan(table.compaction.schedule(cancellable=True))
    assert str(plan) == f"compaction {plan.instant}: 2 file groups in 2 partitions, cancellable"
    assert str(plan.run()).startswith(f"compaction {plan.instant}: 6 rows in 2 files")
    assert str(table.compaction.schedule()).startswith("No compaction: ")


def test_state_is_told_as_values(table: Table) -> None:
    plan = a_plan(table.compaction.schedule(cancellable=True, max_file_groups=1))
    (reported,) = table.plans()
    assert (reported.instant, reported.service, reported.cancellable) == (
        plan.instant,
        "compaction",
        True,
    )
    chosen, skipped = plan.explain()[:1], plan.explain()[1:]
    assert [one.verdict for one in chosen] == ["chosen"]
    assert skipped
    assert all(one.verdict == "left_out" for one in skipped)
    assert table.attempts() == ()
    assert table.heartbeats() == ()
    plan.cancel()
    assert [row.entry for row in table.ledger(plan.instant)] == ["cancelled"]
    assert table.plans() == ()


def test_keywords_mean_the_settings_of_the_service_first(table: Table) -> None:
    assert isinstance(table.clustering.schedule(small_file_limit=1, dry_run=True), Refusal)
    assert isinstance(table.clustering.schedule(dry_run=True), Preview)


def test_the_metadata_table_is_looked_after_by_itself(table: Table) -> None:
    done = table.maintain_metadata(["compaction"])
    assert [step.service for step in done.steps] == ["compaction"]
    assert table.read_arrow().num_rows == 6


def test_a_write_compacts_where_the_table_asks_for_it(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    options = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    table.upsert(updated(ts=9).table(), options=options)
    assert not any(slice_.log_files for slice_ in table.file_slices())
