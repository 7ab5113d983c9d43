"""Plans of Java, cancelled on its own tables: the plan is gone, and readers see what they saw."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline, load_active
from lakewarden.engine.transaction.cancel.cancel import Cleanup, Ending, cancel
from tests.engine.transaction.golden_contexts import context_of, slices
from tests.golden_tables import GoldenTable

# Table -> what its pending plan is of.
PLANNED = {
    "mor_compaction_requested": Action.COMPACTION,
    "mor_compaction_inflight": Action.COMPACTION,
    "mor_log_compaction_requested": Action.LOG_COMPACTION,
    "mor_clustering_requested": Action.CLUSTERING,
}


def timeline(storage: Storage) -> ActiveTimeline:
    return load_active(storage, load_config(storage).layout)


def pending(storage: Storage, action: Action) -> str:
    (plan,) = timeline(storage).pending((action,))
    return plan.requested


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_of_java_is_cancelled_by_force_only(golden_copy: GoldenTable, name: str) -> None:
    storage = open_storage(Location(str(golden_copy(name))))
    plan = pending(storage, PLANNED[name])
    seen = slices(storage, use_metadata=False)
    with pytest.raises(InvalidRequest) as raised:
        cancel(context_of(storage), plan, "in the way")
    assert raised.value.code == "not_cancellable"
    answer = cancel(context_of(storage), plan, "in the way", force=True)
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
    assert answer.handed_back
    assert timeline(storage).pending() == ()
    assert slices(storage, use_metadata=False) == seen
    assert slices(storage, use_metadata=True) == seen
    left = [entry.path for entry in storage.walk("") if plan in entry.path]
    assert all(path.startswith(".hoodie/.lakewarden/") for path in left)


def test_a_clean_of_java_that_was_not_begun_is_cancelled(golden_copy: GoldenTable) -> None:
    storage = open_storage(Location(str(golden_copy("cow_clean_requested"))))
    plan, seen = pending(storage, Action.CLEAN), slices(storage, use_metadata=True)
    answer = cancel(context_of(storage), plan, "in the way")
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
    assert timeline(storage).pending() == ()
    assert slices(storage, use_metadata=True) == seen


@pytest.mark.parametrize("name", ["mor_indexing_requested", "mor_indexing_inflight"])
def test_an_index_that_java_builds_is_cancelled(golden_copy: GoldenTable, name: str) -> None:
    storage = open_storage(Location(str(golden_copy(name))))
    seen = slices(storage, use_metadata=True)
    answer = cancel(context_of(storage), pending(storage, Action.INDEXING), "in the way")
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
    assert timeline(storage).pending() == ()
    assert load_config(storage).metadata_partitions_inflight == ()
    assert slices(storage, use_metadata=True) == seen
