"""The scope of plans: what Java's plans touch, and which may be given up."""

import pytest

from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import load_active
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY, PlanScope, plan_scope
from tests.golden_tables import GoldenTable

PENDING = {
    "mor_compaction_requested": Action.COMPACTION,
    "mor_log_compaction_requested": Action.LOG_COMPACTION,
    "mor_clustering_requested": Action.CLUSTERING,
}


@pytest.mark.parametrize("name", PENDING)
def test_plans_of_java_name_their_file_groups(golden: GoldenTable, name: str) -> None:
    storage = open_storage(Location(str(golden(name))))
    active = load_active(storage, load_config(storage).layout)
    (plan,) = active.pending((PENDING[name],))
    scope = plan_scope(plan.action, active.read(plan), active.path(plan))
    assert scope.groups
    for group in scope.groups:
        assert any(group.file_id in entry.name for entry in storage.list(group.partition).files), (
            group
        )
    assert not scope.is_cancellable


@pytest.mark.parametrize(("text", "answer"), [("true", True), ("TRUE ", True), ("no", False)])
def test_a_plan_says_whether_it_may_be_given_up(text: str, answer: bool) -> None:
    content = compaction.encode_plan(
        compaction.CompactionPlan(extra_metadata={CANCELLABLE_KEY: text})
    )
    assert plan_scope(Action.COMPACTION, content, "p").is_cancellable is answer


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING, Action.CLEAN])
def test_a_plan_that_was_cut_short_is_none(action: Action) -> None:
    with pytest.raises(CorruptTable) as raised:
        plan_scope(action, b"Obj", "p")
    assert raised.value.code == TORN_PLAN


def test_ingestion_has_no_plan() -> None:
    assert plan_scope(Action.COMMIT, b"", "p") == PlanScope()
