"""The state of plans as tables: each column says what is on storage; looking changes nothing."""

from pathlib import Path

import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.procedures.declaring.caller import PlainCaller, TableAddress
from lakewarden.table_service_handle import Plan
from tests.engine.services.service_table import updated
from tests.procedures.calls import call, call_one, contents_of, context_of
from tests.writing.shapes import carry_out


def planned(path: str, **plan_request: object) -> Plan:
    plan = Table(path).compaction.schedule(**plan_request)
    assert isinstance(plan, Plan)
    return plan


def test_a_plan_is_shown_until_it_has_ended(path: str) -> None:
    plan = planned(path, cancellable=True, max_file_groups=1)
    row = call_one("show_plans", path=path)
    assert (row["instant"], row["service"], row["state"]) == (
        plan.instant,
        "compaction",
        "requested",
    )
    assert (row["cancellable"], row["file_groups_count"], row["owner"]) == (True, 1, None)
    assert row["requested_at"].tzinfo is not None
    plan.cancel()
    assert call("show_plans", path=path) == []


def test_plans_are_chosen_by_service_and_state_in_any_spelling(path: str) -> None:
    planned(path)
    assert call("show_plans", path=path, service="Compaction", state="REQUESTED")
    assert call("show_plans", path=path, service="log-compaction") == []
    assert call("show_plans", path=path, state="inflight") == []
    for wrong in ({"service": "compactoin"}, {"state": "begun"}):
        with pytest.raises(InvalidRequest) as refused:
            call("show_plans", path=path, **wrong)
        assert refused.value.code == "bad_argument"


def test_a_pending_plan_and_the_next_one_are_explained(path: str) -> None:
    plan = planned(path, max_file_groups=1)
    chosen, left = call("explain_plan", path=path, instant=plan.instant)
    assert (chosen["verdict"], chosen["held_by_instant"]) == ("chosen", plan.instant)
    assert chosen["bytes"] > 0
    assert left["verdict"] == "left_out"
    following = call("explain_plan", path=path, service="compaction")
    assert {row["partition"]: row["verdict"] for row in following} == {
        chosen["partition"]: "left_out",
        left["partition"]: "chosen",
    }
    assert call("explain_plan", path=path, service="compaction", partition="p=none") == []
    with pytest.raises(InvalidRequest, match="either a service or an instant"):
        call("explain_plan", path=path)
    with pytest.raises(InvalidRequest, match="has no plan"):
        call("explain_plan", path=path, instant="20200101000000000")


def test_what_there_is_nothing_to_plan_is_explained_too(path: str) -> None:
    assert all(
        r["verdict"] == "left_out"
        for r in call("explain_plan", path=path, service="log_compaction")
    )


def test_ledgers_tell_who_has_ended_what(path: str) -> None:
    plan = planned(path, cancellable=True)
    plan.cancel("room for a backfill")
    row = call_one("show_ledger", path=path, instant=plan.instant)
    assert (row["number"], row["entry"], row["reason"]) == (1, "cancelled", "room for a backfill")
    assert row["handed_back_partitions_count"] == 2
    entries = call("show_ledger", path=path)
    assert row | {"age_seconds": None} in [one | {"age_seconds": None} for one in entries]
    assert len({one["instant"] for one in entries}) > 1
    assert call("show_ledger", path=path, limit=1) != []


def test_signs_of_life_and_markers_and_locks_are_shown(path: str) -> None:
    left = Path(path, ".hoodie", ".temp", "20200101000000000", "p=a")
    left.mkdir(parents=True)
    (left / "some-file_0-0-1_20200101000000000.parquet.marker.CREATE").touch()
    marker = call_one("show_markers", path=path)
    assert (marker["partition"], marker["kind"], marker["state"]) == (
        "p=a",
        "CREATE",
        "left_behind",
    )
    assert call("show_markers", path=path, instant="20200102000000000") == []
    heartbeat = Path(path, ".hoodie", ".heartbeat", "20200101000000000")
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    shown = call_one("show_heartbeats", path=path, instant="20200101000000000")
    assert (shown["attempt"], shown["state"]) == (0, "live")
    assert call_one("show_locks", path=path)["state"] == "free"
    with context_of(path).lock.hold():
        held = call_one("show_locks", path=path)
    assert held["state"] == "held"
    assert held["expires_at"] > held["held_since"]


def test_the_remedy_of_a_blocker_can_be_copied(path: str) -> None:
    planned(path, cancellable=True)
    for number in range(3):
        carry_out(Table(path), updated(ts=3 + number))
    settings = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2"}
    rows = call("show_blockers", path=path, caller=PlainCaller(settings=settings))
    assert {row["blocked_service"] for row in rows} >= {"clean"}
    assert all(row["reason"] for row in rows)
    assert rows[0]["remedy"].startswith("CALL cancel_plan(path => '")
    assert "it''s a table" in rows[0]["remedy"]


def test_health_says_what_wants_looking_after(path: str) -> None:
    figures = {row["metric"]: row for row in call("table_health", path=path)}
    assert figures["deltacommits_since_compaction"]["verdict"] == "ok"
    assert figures["log_to_base_ratio"]["value"] > 0
    assert figures["table_size"]["verdict"] == "shown"
    strict = call("table_health", path=path, options="hoodie.compact.inline.max.delta.commits=1")
    beyond = {row["metric"]: row for row in strict}["deltacommits_since_compaction"]
    carry_out(Table(path), updated(ts=3))
    strict = call("table_health", path=path, options="hoodie.compact.inline.max.delta.commits=1")
    beyond = {row["metric"]: row for row in strict}["deltacommits_since_compaction"]
    assert (beyond["threshold"], beyond["verdict"]) == (1, "attention")
    assert beyond["remedy"].startswith("CALL run_compaction(")


class CatalogCaller(PlainCaller):
    """A caller whose catalog has one database with some tables."""

    tables = ("good", "bad")
    good = ""

    def tables_in(self, database: str) -> tuple[str, ...]:
        return self.tables

    def place_of(self, table: str) -> TableAddress:
        return TableAddress(self.good if table == "good" else f"{self.good}.missing")


def test_the_health_of_a_database_is_that_of_its_tables(path: str) -> None:
    caller = CatalogCaller()
    object.__setattr__(caller, "good", path)
    rows = call("table_health", caller=caller, database="lake")
    assert {row["table"] for row in rows} == {"good", "bad"}
    assert [row["table"] for row in rows if row["verdict"] == "unreadable"] == ["bad"]
    object.__setattr__(caller, "tables", ("bad",))
    with pytest.raises(LakewardenError):
        call("table_health", caller=caller, database="lake")
    with pytest.raises(InvalidRequest, match="no catalog"):
        call("table_health", database="lake")
    with pytest.raises(InvalidRequest, match="either a table or a database"):
        call("table_health", path=path, database="lake")


SHOWS = ("plans", "ledger", "heartbeats", "locks", "markers", "blockers")


@pytest.mark.parametrize("name", [*(f"show_{show}" for show in SHOWS), "table_health"])
def test_looking_changes_nothing_and_needs_a_table(path: str, name: str) -> None:
    planned(path)
    before = contents_of(Path(path))
    assert call(name, table=path) is not None
    assert contents_of(Path(path)) == before
    with pytest.raises(InvalidRequest, match="The call names no table"):
        call(name)
    with pytest.raises(InvalidRequest, match="mean different tables"):
        call(name, table=path, path="/elsewhere")
