"""Builds that Java has planned, or begun and left: each ends ready and true, or is refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action
from tests.crash.dying_operations import ports
from tests.golden_tables import GoldenTable

# A state of Java's, the partition that is built in it, and whether Java had begun.
BUILDS = {
    "cow_build_record_planned": ("record_index", False),
    "cow_build_bloom_planned": ("bloom_filters", False),
    "cow_build_record_dead": ("record_index", True),
    "cow_build_record_partitioned_dead": ("record_index", True),
    "cow_build_secondary_dead": ("secondary_index_by_name", True),
    "cow_build_secondary_listed": ("secondary_index_by_name", True),
    "cow_build_expression_stats_dead": ("expr_index_by_day", True),
    "cow_indexing_record_groups": ("record_index", True),
    "cow_indexing_record_hfiles": ("record_index", True),
    "cow_indexing_record_listed": ("record_index", True),
    "mor_indexing_bloom_logged": ("bloom_filters", True),
}


def table_of(golden_copy: GoldenTable, name: str) -> Table:
    return Table(str(golden_copy(f"indexing/{name}")))


def assert_valid(table: Table) -> None:
    bad = [one for one in table.validate() if one.finding.verdict not in ("ok", "skipped")]
    assert not bad


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_of_java_ends_ready(golden_copy: GoldenTable, name: str) -> None:
    partition, has_begun = BUILDS[name]
    table = table_of(golden_copy, name)
    rows = table.read_arrow(use_metadata=False)
    (plan,) = table.pending_indexing()
    (done,) = table.run_indexing()
    assert done.partitions == (partition,)
    assert (done.superseded == plan) is has_begun
    assert table.pending_indexing() == ()
    assert partition in table.config.metadata_partitions
    assert table.config.metadata_partitions_inflight == ()
    assert_valid(table)
    own = [one for one in rows.column_names if not one.startswith("_hoodie_")]
    table.upsert(rows.select(own).slice(0, 3))
    assert_valid(table)
    assert table.read_arrow().num_rows == rows.num_rows


def test_a_write_reports_nothing_to_a_dead_build_without_all_its_groups(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("indexing/cow_indexing_record_groups")
    folder = path / ".hoodie/metadata/record_index"
    before = sorted(one.name for one in folder.iterdir())
    table = Table(str(path))
    rows = table.read_arrow(use_metadata=False)
    own = [one for one in rows.column_names if not one.startswith("_hoodie_")]
    table.upsert(rows.select(own))
    assert sorted(one.name for one in folder.iterdir()) == before
    table.run_indexing()
    assert_valid(table)


class Meanwhile(ManualClock):
    """Somebody does something while one waits."""

    def __init__(self, now_ms: int, do: Callable[[], object] = lambda: None) -> None:
        super().__init__(now_ms)
        self._do = do

    def sleep(self, seconds: float) -> None:
        self._do()
        super().sleep(seconds)


def live(path: Path, do: Callable[[], object] = lambda: None) -> Table:
    """The table at a time when Java is at work at its build."""
    (inflight,) = (path / ".hoodie/timeline").glob("*.indexing.inflight")
    inflight.touch()
    clock = Meanwhile(int(inflight.stat().st_mtime * 1000), do)
    return Table.on(open_storage(Location(str(path))), ports(clock, 1))


def rewrite(table: Table) -> str:
    """Write some rows again, and new ones; the instant."""
    rows = table.read_arrow(use_metadata=False)
    own = rows.select([one for one in rows.column_names if not one.startswith("_hoodie_")])
    new = own.to_pylist()[:4]
    (key,) = table.config.key_fields
    return table.upsert(
        [*own.to_pylist(), *({**one, key: f"{one[key]} too"} for one in new)]
    ).instant


def reported(path: Path, partition: str, instant: str) -> list[str]:
    """The logs in which a write has reported to the build, by its instant."""
    folder = path / ".hoodie/metadata" / partition
    return sorted(one.name for one in folder.iterdir() if f"_{instant}.log" in one.name)


def test_race_19_a_write_gives_way_to_a_live_build_that_lacks_file_groups(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("indexing/cow_indexing_record_groups")
    folder = path / ".hoodie/metadata/record_index"
    before = sorted(one.name for one in folder.iterdir())
    rows = Table(str(path)).read_arrow(use_metadata=False)
    table = live(path)
    with pytest.raises(Conflict) as raised:
        rewrite(table)
    assert raised.value.code == "index_groups_incomplete"
    assert sorted(one.name for one in folder.iterdir()) == before
    assert table.read_arrow(use_metadata=False).equals(rows)


def test_race_19_a_write_waits_for_the_file_groups_of_a_live_build(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("indexing/cow_indexing_record_groups")
    whole = golden_copy("indexing/cow_indexing_record_hfiles") / ".hoodie/metadata/record_index"
    folder = path / ".hoodie/metadata/record_index"

    def finish() -> None:
        for one in (*whole.glob(".*.log.*"), whole / ".hoodie_partition_metadata"):
            (folder / one.name).write_bytes(one.read_bytes())

    table = live(path, finish)
    instant = rewrite(table)
    assert len(reported(path, "record_index", instant)) > 1
    assert_ends_ready(path)


def test_race_19_a_write_reports_to_a_live_build_that_has_its_file_groups(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("indexing/cow_indexing_record_hfiles")
    assert len(reported(path, "record_index", rewrite(live(path)))) > 1
    assert_ends_ready(path)


def test_race_20_a_write_reports_to_a_live_build_that_only_its_plan_names(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("indexing/cow_build_secondary_dead")
    partition = "secondary_index_by_name"
    config = Table(str(path)).config
    assert partition not in (*config.metadata_partitions, *config.metadata_partitions_inflight)
    last = path / ".hoodie/metadata" / partition / ".hoodie_partition_metadata"
    table = live(path, lambda: last.write_bytes(b"commitTime=00000000000000002\n"))
    assert len(reported(path, partition, rewrite(table))) > 1
    assert_ends_ready(path)


def assert_ends_ready(path: Path) -> None:
    """Once Java has died, the build can be finished."""
    (inflight,) = (path / ".hoodie/timeline").glob("*.indexing.inflight")
    os.utime(inflight, (0, 0))
    table = Table(str(path))
    (done,) = table.run_indexing()
    assert set(done.partitions) <= set(table.config.metadata_partitions)
    assert_valid(table)


def test_statistics_of_partitions_alone_are_refused(golden_copy: GoldenTable) -> None:
    table = table_of(golden_copy, "cow_build_partition_stats_planned")
    with pytest.raises(InvalidRequest, match="column_stats") as refused:
        table.run_indexing()
    assert refused.value.code == "unsupported_metadata_partition"
    assert table.pending_indexing() == ()
    assert_valid(table)


def test_a_second_plan_for_what_is_ready_ends_and_changes_nothing(
    golden_copy: GoldenTable,
) -> None:
    table = table_of(golden_copy, "cow_indexing_scheduled_twice")
    built = table.timeline().completed((Action.INDEXING,))
    (done,) = table.run_indexing()
    assert done.was_completed_before
    assert table.pending_indexing() == ()
    assert table.timeline().completed((Action.INDEXING,)) == built
    assert "bloom_filters" in table.config.metadata_partitions
    assert_valid(table)
