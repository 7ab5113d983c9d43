"""The services at the front door: arguments that make no sense, dry runs, and what is explained."""

from collections.abc import Callable
from typing import Any

import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.services.inspection.state.plans import Verdict
from lakewarden.engine.services.planning.plan_request import Reason, Refusal
from lakewarden.engine.transaction.cancel.cancel import Ending
from lakewarden.previews import Preview
from lakewarden.table_service_handle import Plan, TableServiceHandle
from tests.engine.services.service_table import MOR, inserted, new_service_world, updated

FEW_BLOCKS = {"hoodie.log.compaction.blocks.threshold": "2"}
SERVICES = ("compaction", "log_compaction", "clustering")


@pytest.fixture
def table() -> Table:
    return new_service_world(MOR, inserted(), updated(ts=2), updated(ts=3)).table(50)


def door_of(table: Table, name: str) -> TableServiceHandle:
    handle = getattr(table, name)
    assert isinstance(handle, TableServiceHandle)
    return handle


def a_plan(table: Table, name: str = "compaction", **plan_request: Any) -> Plan:
    done = door_of(table, name).schedule(options=FEW_BLOCKS, **plan_request)
    assert isinstance(done, Plan), done
    return done


def preview(table: Table, name: str = "compaction", **plan_request: Any) -> Preview:
    done = door_of(table, name).schedule(dry_run=True, options=FEW_BLOCKS, **plan_request)
    assert isinstance(done, Preview), done
    return done


WRONG: dict[str, Callable[[Table, Any], object]] = {
    "max_bytes": lambda table, value: table.compaction.schedule(max_bytes=value),
    "max_file_groups": lambda table, value: table.clustering.schedule(max_file_groups=value),
    "limit": lambda table, value: table.compaction.run(limit=value),
    "deadline": lambda table, value: table.log_compaction.run(deadline=value),
    "cancellable": lambda table, value: table.compaction.schedule(value),
    "force": lambda table, value: table.cancel("1", force=value),
    "wait_seconds": lambda table, value: table.cancel("1", wait_seconds=value),
    "max_commits": lambda table, value: table.clean(max_commits=value),
    "services": lambda table, value: table.maintain_metadata(value),
    "partitions": lambda table, value: table.clean(partitions=value),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "x") for name in WRONG),
        *((name, -1) for name in WRONG if name not in ("services", "partitions")),
        ("max_bytes", 1.5),
        ("limit", True),
        ("services", ["clen"]),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_by_name(
    table: Table, name: str, value: object
) -> None:
    before = table.timeline().instants
    with pytest.raises(InvalidRequest, match=f"^{name}=.* is not valid") as refused:
        WRONG[name](table, value)
    assert refused.value.code == "bad_argument"
    assert table.timeline().instants == before


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda table: table.compaction.schedule(limit=1), "max_file_groups"),
        # It is the end of a key of clustering's own.
        (lambda table: table.clustering.schedule(limit=1), "max_file_groups"),
        (lambda table: table.log_compaction.schedule_and_run(limit=1), "max_file_groups"),
        (lambda table: table.clean(limit=1), "max_commits"),
        (lambda table: table.archive(limit=1), "max_commits"),
    ],
)
def test_a_limit_is_of_plans_that_are_run(
    table: Table, call: Callable[[Table], object], instead: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"takes no limit.*{instead}"):
        call(table)


@pytest.mark.parametrize("name", SERVICES)
def test_partitions_that_are_not_there_are_refused(table: Table, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Their paths look like 'p=b'") as refused:
        door_of(table, name).schedule(partitions=["p=a", "b"])
    assert (refused.value.code, refused.value.partition) == ("unknown_partition", "b")


@pytest.mark.parametrize("name", SERVICES)
def test_a_filter_on_partition_columns_limits_a_plan(table: Table, name: str) -> None:
    plan = a_plan(table, name, filter=[("p", "=", "b")])
    assert plan.partitions == ("p=b",)
    # What it has skipped comes back, and both limits hold where both are given.
    assert preview(table, name).partitions == ("p=a",)
    refused = door_of(table, name).schedule(
        options=FEW_BLOCKS, filter=[("p", "=", "b")], partitions=["p=a"]
    )
    assert isinstance(refused, Refusal)
    with pytest.raises(InvalidRequest, match="partition columns"):
        door_of(table, name).schedule(filter=[("ts", ">", 3)])


def test_a_plan_is_carried_out_by_its_own_service_only(table: Table) -> None:
    for name in SERVICES:
        plan = a_plan(table, name, cancellable=True)
        for other in set(SERVICES) - {name}:
            for dry_run in (True, False):
                with pytest.raises(InvalidRequest) as refused:
                    door_of(table, other).run(plan.instant, dry_run=dry_run)
                assert refused.value.code == "plan_of_another_service"
        assert plan.state == "requested"
        plan.cancel()


def test_a_write_is_no_plan_that_has_completed(table: Table) -> None:
    written = table.timeline().completed()[-1].requested
    with pytest.raises(InvalidRequest, match="It is a deltacommit"):
        table.compaction.run(written)


def test_a_dry_run_tells_which_plans_would_be_carried_out(table: Table) -> None:
    assert table.compaction.run(dry_run=True).refusal is not None
    first = a_plan(table, max_file_groups=1)
    second = a_plan(table)
    dry_run_result = table.compaction.run(limit=1, dry_run=True)
    assert (dry_run_result.would_run, dry_run_result.left) == ((first.instant,), (second.instant,))
    assert second.run(dry_run=True).would_run == (second.instant,)
    assert str(second.run(dry_run=True)).endswith("would run")
    with pytest.raises(InvalidRequest, match="no pending plan x"):
        table.compaction.run("x", dry_run=True)
    assert [plan.state for plan in (first, second)] == ["requested"] * 2


def test_a_plan_that_takes_too_long_to_schedule_is_left_for_later(table: Table) -> None:
    done = table.compaction.schedule_and_run(deadline=0)
    assert [plan.instant for plan in table.compaction.pending()] == list(done.left)  # type: ignore[union-attr]


def test_what_makes_room_for_a_plan_is_told_before_and_after(table: Table) -> None:
    older = a_plan(table, "clustering", cancellable=True)
    assert preview(table).preempts == (older.instant,)
    assert f"it would cancel {older.instant}" in str(preview(table))
    assert older.state == "requested"
    plan = a_plan(table)
    assert plan.preempted == (older.instant,)
    assert older.instant in str(plan)
    assert older.state == "rolled back"


def test_savepoints_have_dry_runs(table: Table) -> None:
    dry_run_result = table.savepoint(comment="x", dry_run=True)
    assert dry_run_result.is_dry_run
    assert table.savepoints() == ()
    made = table.savepoint(comment="x")
    assert (dry_run_result.instant, dry_run_result.files) == (made.instant, made.files)
    assert table.savepoint(dry_run=True).was_there
    assert table.delete_savepoint(made.instant, dry_run=True).is_dry_run
    assert [one.instant for one in table.savepoints()] == [made.instant]
    with pytest.raises(InvalidRequest, match="no savepoint 1"):
        table.delete_savepoint("1", dry_run=True)
    with pytest.raises(InvalidRequest, match="No savepoint was created at 1"):
        table.savepoint("1", dry_run=True)


def test_repairs_have_dry_runs(table: Table) -> None:
    newest = table.timeline().completed()[-1].requested
    before = table.timeline().instants
    assert table.rollback_failed_writes(dry_run=True) == ()
    assert table.sweep(dry_run=True) == ()
    assert table.rollback(newest, dry_run=True).files_deleted > 0
    assert table.timeline().instants == before


@pytest.mark.parametrize("name", SERVICES)
def test_a_plan_is_explained_while_it_waits_and_when_it_has_ended(table: Table, name: str) -> None:
    dry_run_result = preview(table, name, max_file_groups=1)
    plan = a_plan(table, name, max_file_groups=1, cancellable=True)
    waiting = plan.explain()
    shown = [(row.partition, row.file_id, row.verdict) for row in waiting]
    assert len(set(shown)) == len(shown) == 2
    assert {row.verdict for row in waiting} == set(Verdict)
    assert [(row.partition, row.file_id, row.verdict) for row in dry_run_result.explain()] == shown
    plan.run()
    assert [(row.partition, row.file_id, row.verdict) for row in plan.explain()] == shown
    other = a_plan(table, name, cancellable=True)
    assert other.cancel().outcome is Ending.CANCELLED
    (row, *_) = other.explain()
    assert (row.verdict, row.reason) == (
        Verdict.CHOSEN,
        "It was in the plan, which is rolled back.",
    )


@pytest.mark.parametrize(
    "name",
    [
        "LogFileSizeBased",
        "LogFileNumBasedCompactionStrategy",
        "org.apache.hudi.table.action.compact.strategy.BoundedIOCompactionStrategy",
        "UnBounded",
        "BoundedIO,UnBounded",
    ],
)
def test_a_strategy_of_compaction_is_named_by_a_keyword(table: Table, name: str) -> None:
    assert len(preview(table, strategy=name).groups) == 2


@pytest.mark.parametrize("name", ["", " , ", "Nonsense", "UnBounded,Nonsense"])
def test_a_strategy_that_is_none_is_refused_with_those_there_are(table: Table, name: str) -> None:
    with pytest.raises(InvalidRequest, match="LogFileSizeBased, LogFileNumBased") as refused:
        table.compaction.schedule(strategy=name)
    assert refused.value.code == "unsupported_strategy"


def test_a_strategy_of_clustering_is_named_by_a_keyword(table: Table) -> None:
    assert (
        len(preview(table, "clustering", strategy="RecentDays", lookback_partitions=1).groups) == 1
    )
    assert (
        len(preview(table, "clustering", strategy="SparkSizeBasedClusteringPlanStrategy").groups)
        == 2
    )
    with pytest.raises(InvalidRequest, match="RecentDays, SelectedPartitions"):
        table.clustering.schedule(strategy="Nonsense")


def test_a_layout_that_is_none_is_refused_when_the_plan_is_made(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="LINEAR, ZORDER, HILBERT"):
        table.clustering.schedule(layout="SPIRAL")


def test_columns_to_sort_by_may_be_a_list(table: Table) -> None:
    assert preview(table, "clustering", sort_columns=["name", "ts"]).groups
    with pytest.raises(InvalidRequest, match="cannot sort by 'nope'"):
        table.clustering.schedule(sort_columns=["name", "nope"])


def test_triggers_are_honoured_when_that_is_asked_for(table: Table) -> None:
    refused = table.compaction.schedule(honour_trigger=True, trigger="NUM_AND_TIME")
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TRIGGER_NOT_REACHED
    assert "waits for 5 delta commits (there are 3) and 3600 seconds" in refused.why


def test_a_new_table_has_no_archive_and_the_scope_says_so(table: Table) -> None:
    assert preview(table).scope.endswith("no compaction has completed yet.")


def test_a_plan_says_what_it_has_looked_at(table: Table) -> None:
    first = a_plan(table)
    assert first.scope.startswith("All partitions are checked")
    first.run()
    table.upsert(updated(2, ts=9, partitions="b").table())
    since = a_plan(table)
    assert since.scope.startswith(f"Since the compaction {first.instant}, partitions written to: 1")
    since.cancel(force=True)
    # Switching it off and on again forgets nothing.
    switched_off = preview(table, incremental_enabled=False)
    assert switched_off.scope.endswith("incremental.enabled is off.")
    assert switched_off.groups == preview(table).groups == since.groups


def test_a_plan_whose_boundary_is_archived_says_that_it_looks_at_everything(table: Table) -> None:
    a_plan(table).run()
    few = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    retained = {"hoodie.clean.commits.retained": 1}
    for ts in range(10, 16):
        table.upsert(updated(2, ts=ts, partitions="b").table())
        table.clean(options=retained)
    table.maintain_metadata()
    assert table.archive(options={**few, **retained})
    plan = a_plan(table)
    assert plan.scope == (
        "All partitions are checked, because the last completed compaction is archived, "
        "if there was one."
    )
    assert plan.partitions == ("p=b",)


def test_answers_of_services_can_be_read(table: Table) -> None:
    assert str(table.clean()) == "Nothing was cleaned: There are 3 commits, and 10 are retained."
    assert str(table.clean(policy="KEEP_LATEST_FILE_VERSIONS", dry_run=True)).startswith(
        "Nothing was cleaned: "
    )
    assert str(table.archive()).startswith("Nothing was archived: 3 commits are active")
    assert "compaction" in str(table.maintain_metadata(dry_run=True))
    saved = table.savepoint(comment="kept")
    assert str(saved) == f"savepoint {saved.instant}, {saved.files} files in 2 partitions: kept"
    assert str(table.restore(saved.instant)).startswith("No instant is later than")
