"""`cancel_plan`: what it answers, and that a dry run tells the same and changes nothing."""

from pathlib import Path

import pytest

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.table_service_handle import Plan
from tests.procedures.calls import call, call_one, contents_of


def planned(path: str, *, cancellable: bool) -> str:
    plan = Table(path).compaction.schedule(cancellable=cancellable)
    assert isinstance(plan, Plan)
    return plan.instant


def test_a_dry_run_tells_what_a_call_does(path: str) -> None:
    instant = planned(path, cancellable=True)
    before = contents_of(Path(path))
    dry_run_result = call_one("cancel_plan", path=path, instant=instant, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("cancel_plan", path=path, instant=instant, reason="a backfill comes first")
    assert dry_run_result | {"message": ""} == done | {"message": ""}
    assert (done["outcome"], done["cleanup"]) == ("cancelled", "done")
    assert done["handed_back_partitions_count"] == 2


def test_twice_is_once(path: str) -> None:
    instant = planned(path, cancellable=True)
    call("cancel_plan", path, instant)
    assert call_one("cancel_plan", path, instant)["outcome"] == "already_cancelled"


def test_what_has_committed_stays(path: str) -> None:
    instant = planned(path, cancellable=True)
    Table(path).compaction.run(instant)
    done = call_one("cancel_plan", path, instant)
    assert (done["outcome"], done["cleanup"]) == ("already_committed", None)


def test_force_is_needed_where_the_plan_does_not_allow_it(path: str) -> None:
    instant = planned(path, cancellable=False)
    dry_run_result = call_one("cancel_plan", path, instant, dry_run=True)
    assert dry_run_result["outcome"] == "refused"
    with pytest.raises((InvalidRequest, Conflict)) as refused:
        call("cancel_plan", path, instant)
    assert str(refused.value) == dry_run_result["message"]
    assert call_one("cancel_plan", path, instant, force=True)["outcome"] == "cancelled"


def test_an_unknown_instant_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="no pending instant"):
        call("cancel_plan", path, "20200101000000000")
