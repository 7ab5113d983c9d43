"""File groups that a pending plan is going to rewrite take in no new rows."""

import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.routing.route import planned_groups, without_planned
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable

PENDING = ("pending_compaction", "pending_log_compaction", "pending_clustering")


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_the_planned_groups_are_those_that_java_names(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    view = golden_document(name)["fsview"]
    named = {
        FileGroupId(one["partition"], one["file_id"]) for kind in PENDING for one in view[kind]
    }
    state = load_snapshot(open_storage(Location(str(golden(name)))))
    assert planned_groups(state.timeline.active) == named


@pytest.mark.parametrize("name", ["mor_clustering_requested", "mor_compaction_inflight"])
def test_planned_groups_are_no_candidates(name: str, golden: GoldenTable) -> None:
    state = load_snapshot(open_storage(Location(str(golden(name)))))
    planned = planned_groups(state.timeline.active)
    slices = latest_file_slices(state, None)
    kept = without_planned(slices, state.timeline.active)
    assert {slice_.key for slice_ in kept} == {slice_.key for slice_ in slices} - planned
