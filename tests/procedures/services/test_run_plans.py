"""Procedures that schedule plans and carry them out: what runs, in which order, what is told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.engine.transaction.start import start
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.table_service_handle import Plan
from tests.engine.services.service_table import COW, inserted, updated
from tests.procedures.calls import call, call_one, contents_of, context_of
from tests.writing.shapes import carry_out

UNKNOWN = "20200101000000000"


def scheduled(path: str, **plan_request: object) -> str:
    plan = Table(path).compaction.schedule(**plan_request)
    assert isinstance(plan, Plan)
    return plan.instant


def logs(path: str) -> int:
    return sum(len(slice_.log_files) for slice_ in Table(path).file_slices())


def without(rows: Iterable[dict[str, object]], *columns: str) -> list[dict[str, object]]:
    return [{name: row[name] for name in row if name not in columns} for row in rows]


def test_a_compaction_is_scheduled_and_carried_out(path: str) -> None:
    rows = Table(path).read_arrow().sort_by("id")
    row = call_one("run_compaction", "schedule", path, cancellable=True)
    assert (row["state"], row["operation_size"], row["files_count"]) == ("REQUESTED", 2, None)
    assert Table(path).compaction.plan(str(row["timestamp"])).cancellable
    done = call_one("run_compaction", "EXECUTE", path=path)
    assert (done["timestamp"], done["state"]) == (row["timestamp"], "COMPLETED")
    assert (done["operation_size"], done["files_count"], done["rows_written_count"]) == (2, 2, 6)
    assert done["written_bytes"] > 0
    assert logs(path) == 0
    assert Table(path).read_arrow().sort_by("id").select(["id", "v"]) == rows.select(["id", "v"])


@pytest.mark.parametrize("op", ["scheduleAndExecute", "schedule_and_execute", "run", None])
def test_both_at_once_has_several_names(path: str, op: str | None) -> None:
    assert call_one("run_compaction", op, path)["state"] == "COMPLETED"
    assert logs(path) == 0


def test_pending_plans_are_carried_out_along_with_the_new_one_and_the_newest_stands_first(
    path: str,
) -> None:
    first = scheduled(path, max_file_groups=1)
    newest, oldest = call("run_compaction", path=path)
    assert oldest["timestamp"] == first
    assert newest["timestamp"] > first
    assert (newest["state"], oldest["state"]) == ("COMPLETED", "COMPLETED")


def test_a_limit_takes_the_oldest_and_tells_of_the_new_one(path: str) -> None:
    first = scheduled(path, max_file_groups=1)
    newest, oldest = call("run_compaction", path=path, limit=1)
    assert (oldest["timestamp"], oldest["state"]) == (first, "COMPLETED")
    assert newest["state"] == "REQUESTED"
    with pytest.raises(InvalidRequest, match="limit"):
        call("run_compaction", path=path, limit=0)


@pytest.mark.parametrize("argument", ["instants", "timestamp"])
def test_plans_that_are_named_are_executed_and_no_others(path: str, argument: str) -> None:
    first, second = scheduled(path, max_file_groups=1), scheduled(path)
    assert call_one("run_compaction", path=path, **{argument: second})["timestamp"] == second
    assert [plan.instant for plan in Table(path).compaction.pending()] == [first]


def test_if_one_of_the_named_plans_is_missing_nothing_runs(path: str) -> None:
    plan, before = scheduled(path), contents_of(Path(path))
    with pytest.raises(InvalidRequest, match=f"These plans are not pending: {UNKNOWN}") as refused:
        call("run_compaction", path=path, instants=f"{plan}, {UNKNOWN}")
    assert refused.value.code == "unknown_plan"
    assert contents_of(Path(path)) == before


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"op": "excute"}, "Did you mean 'execute'"),
        ({"op": "schedule", "instants": UNKNOWN}, "contradicts"),
        ({"options": "hoodie.compaction.target.ioo=1"}, "no option"),
        ({"limit": -1}, "limit"),
    ],
)
def test_bad_input_changes_nothing(path: str, arguments: dict[str, object], word: str) -> None:
    before = contents_of(Path(path))
    with pytest.raises(InvalidRequest, match=word):
        call("run_compaction", path=path, **arguments)
    assert contents_of(Path(path)) == before


def test_nothing_to_do_is_a_row_with_the_reason(path: str) -> None:
    row = call_one("run_compaction", "execute", path)
    assert (row["timestamp"], row["state"]) == (None, None)
    assert "No plan is pending" in str(row["message"])
    call("run_compaction", path=path)
    assert call_one("run_compaction", path=path)["message"].startswith("No compaction:")


def test_a_copy_on_write_table_has_nothing_to_compact(tmp_path: Path) -> None:
    table = COW.create(str(tmp_path / "cow"))
    carry_out(table, inserted())
    assert "copy-on-write" in call_one("run_compaction", path=str(tmp_path / "cow"))["message"]


@pytest.mark.parametrize("name", ["run_compaction", "run_clustering", "run_log_compaction"])
@pytest.mark.parametrize("op", ["schedule", "execute", "scheduleAndExecute"])
def test_a_dry_run_shows_the_rows_and_changes_nothing(path: str, name: str, op: str) -> None:
    for number in range(4):
        carry_out(Table(path), updated(ts=3 + number))
    if op == "execute":
        call(name, path=path, op="schedule")
    before = contents_of(Path(path))
    dry_run_result = call(name, path=path, op=op, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call(name, path=path, op=op)
    what_only_work_tells = ("rows_written_count", "files_count", "written_bytes", "seconds")
    unknown = (*what_only_work_tells, "timestamp", "message")
    assert without(dry_run_result, *unknown) == without(done, *unknown)
    assert done[0]["state"] in ("REQUESTED", "COMPLETED")


def test_a_trigger_that_a_call_names_is_heeded(path: str) -> None:
    options = "hoodie.compact.inline.max.delta.commits=7"
    assert call_one("run_compaction", "schedule", path, options=options)["timestamp"] is None
    assert call_one("run_compaction", "schedule", path)["timestamp"] is not None


def test_options_are_settings_of_the_call(path: str) -> None:
    options = {"hoodie.compaction.logfile.size.threshold": 1 << 30}
    row = call_one("run_compaction", "schedule", path, options=options)
    assert row["timestamp"] is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Impatient(PlainCaller):
    """A caller who loses interest once the work has started."""

    lost: Event = field(default_factory=Event)
    asked: list[int] = field(default_factory=list)
    patience: int = 3

    def check_interrupted(self) -> None:
        self.asked.append(1)
        if len(self.asked) > self.patience:
            raise KeyboardInterrupt


@pytest.mark.parametrize("cancellable", [True, False])
@pytest.mark.parametrize("patience", [2, 5])
def test_whoever_loses_interest_leaves_nothing_in_hand(
    path: str, patience: int, *, cancellable: bool
) -> None:
    plan, before = scheduled(path, cancellable=cancellable), contents_of(Path(path))
    with pytest.raises(KeyboardInterrupt):
        call("run_compaction", "execute", path, caller=Impatient(patience=patience))
    assert call("show_heartbeats", path=path) == []
    left = [row["instant"] for row in call("show_plans", path=path)]
    assert left == ([] if cancellable else [plan])
    files = set(contents_of(Path(path))) - set(before)
    # What an attempt at an immutable plan has made is removed by the next attempt.
    assert not (cancellable and [name for name in files if name.endswith(".parquet")])
    assert call("run_compaction", path=path)[-1]["state"] == "COMPLETED"
    assert logs(path) == 0


def test_a_plan_that_was_made_for_nobody_is_taken_away(path: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        call("run_compaction", path=path, cancellable=True, caller=Impatient(patience=1))
    assert call("show_plans", path=path) == []
    (ended,) = call("show_ledger", path=path, filter="entry = 'cancelled'")
    assert "interrupted" in str(ended["reason"])
    assert logs(path) > 0


def test_a_plan_that_somebody_else_has_in_hand_is_told_and_no_error(path: str) -> None:
    plan = scheduled(path)
    held = start(context_of(path), plan).attempt
    assert held is not None
    try:
        row = call_one("run_compaction", "execute", path)
        assert (row["timestamp"], row["state"]) == (plan, "INFLIGHT")
        assert "is running" in str(row["message"])
    finally:
        held.stop()


def test_one_plan_that_fails_is_a_row_and_if_all_fail_it_is_an_error(path: str) -> None:
    bad, good = scheduled(path, max_file_groups=1), scheduled(path)
    plan = Table(path).compaction.plan(bad)
    (group,) = plan.groups
    (slice_,) = [s for s in Table(path).file_slices() if s.key == group]
    assert slice_.base_file is not None
    base = Path(path, slice_.path(slice_.base_file))
    content = base.read_bytes()
    base.write_bytes(content[: len(content) // 2])
    done, failed = call("run_compaction", "execute", path)
    assert (done["timestamp"], done["state"]) == (good, "COMPLETED")
    assert (failed["timestamp"], failed["state"]) == (bad, "INFLIGHT")
    with pytest.raises(Exception, match=r"parquet|readable|corrupt|Parquet"):
        call("run_compaction", "execute", path)
    base.write_bytes(content)
    assert call_one("run_compaction", "execute", path)["state"] == "COMPLETED"


def test_partitions_of_a_clustering_are_chosen_by_their_columns(path: str) -> None:
    chosen = {"show_involved_partition": True, "op": "schedule", "dry_run": True}
    row = call_one("run_clustering", path=path, predicate="P = 'a'", **chosen)
    assert row["involved_partitions"] == "p=a"
    row = call_one("run_clustering", path=path, predicate="p > 'a' and p <> 'c'", **chosen)
    assert row["involved_partitions"] == "p=b"
    row = call_one("run_clustering", path=path, selected_partitions="p=b", **chosen)
    assert row["involved_partitions"] == "p=b"
    row = call_one("run_clustering", path=path, partition_regex_pattern=".*a", **chosen)
    assert row["involved_partitions"] == "p=a"
    named = {"selected_partitions": "p=b", "partition_regex_pattern": ".*b"}
    row = call_one("run_clustering", path=path, predicate="p = 'a'", **named, **chosen)
    assert row["involved_partitions"] == "p=a"
    assert call_one("run_clustering", path=path, predicate="p = 'z'", **chosen)["state"] is None
    assert (
        call_one("run_clustering", path=path, op="schedule", dry_run=True)["involved_partitions"]
        == "*"
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"predicate": "id = 'k1'"}, "id"),
        ({"predicate": "p ="}, "filter|predicate"),
        ({"order": "naem"}, "Did you mean 'name'"),
        ({"order_strategy": "spiral"}, "linear, z-order, hilbert"),
        ({"partition_regex_pattern": "("}, "pattern"),
    ],
)
def test_bad_wishes_of_a_clustering_change_nothing(
    path: str, arguments: dict[str, object], word: str
) -> None:
    before = contents_of(Path(path))
    with pytest.raises(InvalidRequest, match=word):
        call("run_clustering", path=path, **arguments)
    assert contents_of(Path(path)) == before


@pytest.mark.parametrize("strategy", ["linear", "zorder", "Z-ORDER", "hilbert"])
def test_rows_are_sorted_in_the_order_that_is_asked_for(path: str, strategy: str) -> None:
    rows = Table(path).read_arrow(["id", "v"]).sort_by("id")
    row = call_one("run_clustering", path=path, order="NAME,ts", order_strategy=strategy)
    assert (row["state"], row["input_group_size"]) == ("COMPLETED", 2)
    assert Table(path).read_arrow(["id", "v"]).sort_by("id") == rows


def test_an_index_is_scheduled_and_built_by_its_plan(path: str) -> None:
    assert "No indexing is pending" in call_one("run_indexing", "execute", path)["message"]
    with pytest.raises(InvalidRequest, match="index_name"):
        call("run_indexing", "schedule", path)
    plan = call_one("run_indexing", "schedule", path, index_name="record_index")["timestamp"]
    (planned,) = (one for one in Table(path).index_states() if one.name == "record_index")
    assert (planned.state, planned.instant) == ("PLANNED", plan)
    done = call_one("run_indexing", path=path, instants=plan)
    assert (done["timestamp"], done["message"]) == (plan, "Built: record_index.")
    assert Table(path).config.has_metadata("record_index")


def test_an_index_is_built_in_steps_and_a_plan_is_cancelled_like_any(path: str) -> None:
    asked = {"index_name": "record_index", "path": path}
    (plan,) = call("build_index", op="schedule", **asked)
    assert call_one("cancel_plan", path=path, instant=plan["instant"])["outcome"] == "cancelled"
    with pytest.raises(InvalidRequest) as missing:
        call("build_index", op="resume", **asked)
    assert missing.value.code == "no_indexing_plan"
    call("build_index", op="schedule", **asked)
    (built,) = call("build_index", op="resume", **asked)
    assert (built["state"], built["partition_name"]) == ("READY", "record_index")
    assert call("build_index", **asked)[0]["message"] == "It already exists."


def test_read_only_callers_may_only_try(path: str) -> None:
    caller = PlainCaller(permissions=Permissions(is_read_only=True))
    with pytest.raises((InvalidRequest, Conflict), match="not allowed"):
        call("run_compaction", path=path, caller=caller)
    assert call("run_compaction", path=path, dry_run=True, caller=caller)
