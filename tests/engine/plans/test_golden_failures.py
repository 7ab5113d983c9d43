"""Failed writes of Java, found on its own tables: undone with files, markers and metadata."""

import pytest

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.open_lock import open_lock
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import Repair, settle
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.view.slices import FileSlice
from tests.golden_tables import GoldenTable

# Table -> how many files its failed write has left.
FAILED = {
    "cow_failed_write_pending": 3,
    "mor_failed_write_pending": 6,
    "mor_failed_write_lazy_heartbeat": 6,
    "mor_occ_lost_commit": 3,
}


def context_of(storage: Storage) -> Context:
    ports, settings = Ports(), Settings()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def slices(storage: Storage, *, use_metadata: bool) -> tuple[FileSlice, ...]:
    state = load_snapshot(storage)
    groups = state.file_groups(state.visibility(), None, use_metadata=use_metadata)
    return tuple(group.latest_merged() for group in groups)


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_write_of_java_is_undone_and_the_table_stays_as_it_was(
    golden_copy: GoldenTable, name: str
) -> None:
    storage = open_storage(Location(str(golden_copy(name))))
    expected = slices(storage, use_metadata=False)
    (settled,) = settle(context_of(storage))
    assert (settled.repair, settled.files_deleted) == (Repair.ROLLED_BACK, FAILED[name])
    assert slices(storage, use_metadata=False) == expected
    assert slices(storage, use_metadata=True) == expected
    left = [entry.path for entry in storage.walk("") if settled.instant in entry.path]
    assert all(path.startswith(".hoodie/.lakewarden/") for path in left)


def test_plans_of_java_wait(golden_copy: GoldenTable) -> None:
    for name in ("mor_compaction_requested", "mor_compaction_inflight", "mor_clustering_requested"):
        storage = open_storage(Location(str(golden_copy(name))))
        assert settle(context_of(storage)) == ()
