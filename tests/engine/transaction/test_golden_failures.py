"""Failed writes of Java, found on its own tables: undone with files, markers and metadata."""

import pytest

from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.recovery.failed_writes import Repair, recover_failed_instants
from tests.engine.transaction.golden_contexts import context_of, slices
from tests.golden_tables import GoldenTable

# Table -> how many files its failed write has left.
FAILED = {
    "cow_failed_write_pending": 3,
    "mor_failed_write_pending": 6,
    "mor_failed_write_lazy_heartbeat": 6,
    "mor_occ_lost_commit": 3,
}


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_write_of_java_is_undone_and_the_table_stays_as_it_was(
    golden_copy: GoldenTable, name: str
) -> None:
    storage = open_storage(Location(str(golden_copy(name))))
    expected = slices(storage, use_metadata=False)
    (settled,) = recover_failed_instants(context_of(storage))
    assert (settled.repair, settled.files_deleted) == (Repair.ROLLED_BACK, FAILED[name])
    assert slices(storage, use_metadata=False) == expected
    assert slices(storage, use_metadata=True) == expected
    left = [entry.path for entry in storage.walk("") if settled.instant in entry.path]
    assert all(path.startswith(".hoodie/.lakewarden/") for path in left)


def test_plans_of_java_wait(golden_copy: GoldenTable) -> None:
    for name in ("mor_compaction_requested", "mor_compaction_inflight", "mor_clustering_requested"):
        storage = open_storage(Location(str(golden_copy(name))))
        assert recover_failed_instants(context_of(storage)) == ()
