"""Tables by Java, archived by us: every instant and row is there, in files that anybody reads."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.services.archive.run import move
from lakewarden.engine.services.retention.archive_plan import ArchiveLimits, plan_archive
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.reader import LsmArchive
from tests.canonical import canonical_rows, difference
from tests.golden_tables import GoldenTable

HISTORY = ".hoodie/timeline/history"
TABLES = (
    "mor_archived_lsm_levels",
    "mor_clean_keep_latest_commits",
    "mor_compaction_completed",
    "mor_log_compaction_completed",
    "mor_rollback_of_failed_write",
)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_by_java_is_the_same_when_we_have_archived_it(
    name: str, golden_copy: GoldenTable
) -> None:
    path = golden_copy(name)
    storage = LocalStorage(Location(str(path)))
    timeline = load_snapshot(storage).timeline
    before, rows = timeline.instants(), canonical_rows(Table(str(path)).read_arrow())
    plan = plan_archive(timeline.active.instants, [], ArchiveLimits(1, 1))
    assert plan.instants
    move(storage, timeline.active, plan.instants, threads=2)
    left = load_snapshot(storage).timeline
    assert left.instants() == before
    assert not {one.key for one in left.active.instants} & {one.key for one in plan.instants}
    assert not difference(canonical_rows(Table(str(path)).read_arrow()), rows)
    listed = Table(str(path)).read_arrow(use_metadata=False)
    assert not difference(canonical_rows(listed), rows)
    assert_readable(path, {one.requested for one in plan.instants})


def assert_readable(path: Path, wanted: set[str]) -> None:
    """One Parquet file for all of them, which any reader opens, in ascending order."""
    snapshot = LsmArchive(LocalStorage(Location(str(path))), HISTORY).snapshot
    newest = max(snapshot.files, key=lambda file: file.last)
    rows = pq.read_table(path / HISTORY / newest.name).to_pylist()
    times = [row["instantTime"] for row in rows]
    assert times == sorted(times)
    assert set(times) == wanted
    assert all(row["version"] == 1 and row["metadata"] for row in rows)
