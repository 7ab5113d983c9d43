"""Compaction from draft to commit: rows stay as they are, logs are gone, later logs stay."""

from dataclasses import replace

import pyarrow as pa
import pytest

from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata.commit import Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import decode_plan, encode_plan
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.reading.column_stats import partition_ranges
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import Execution, execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, draft, schedule
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.start import start
from tests.engine.services.service_table import (
    FLAT_MOR,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape

HISTORY = (
    inserted(6),
    updated(4, ts=5),
    # A latecomer, which counts by commit time only, and a delete.
    Write("upsert", (row("k0", 3, "a"), row("new", 3, "b"))),
    Write("delete", (row("k1", 9, "b"),)),
)
SHAPES = (
    MOR,
    FLAT_MOR,
    Shape("mor", has_metadata=False),
    Shape("mor", index="RECORD_INDEX"),
    # New rows go to logs without a base file.
    Shape("mor", index="BUCKET"),
    Shape("mor", is_partitioned=False, has_metadata=False, index="BUCKET"),
)


def planned(
    world: ServiceWorld, plan_request: PlanRequest | None = None, **settings: object
) -> str:
    plan = schedule(world.context(**settings), COMPACTION, plan_request or PlanRequest())
    assert isinstance(plan, Scheduled)
    return plan.instant


def compacted(world: ServiceWorld, **settings: object) -> Execution:
    return execute(world.context(**settings), COMPACTION, planned(world, **settings))


def stats(world: ServiceWorld, instant: str) -> dict[str, WriteStat]:
    """What the commit says, by partition; these tests have one file group in each."""
    active = world.snapshot().timeline.active
    (completed,) = [one for one in active.with_time(instant) if one.is_completed]
    metadata = commit_payload.decode(active.read(completed), "")
    assert metadata.compacted
    assert metadata.operation_type == Operation.COMPACT
    return {
        one.partition_path or "": one
        for g in metadata.partition_to_write_stats.values()
        for one in g
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_stay_as_they_are_and_logs_are_gone(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    expected = contents(shape, *HISTORY)
    assert world.rows() == expected
    assert world.logs() > 0
    done = compacted(world)
    assert done.rows_written >= len(expected) - 1
    assert world.logs() == 0
    assert world.rows() == expected
    assert world.rows(use_metadata=False) == expected
    then = Write("upsert", (row("k2", 8, "a"), row("z", 8, "b")))
    world.write(then)
    assert world.rows() == contents(shape, *HISTORY, then)


def test_parquet_logs_are_merged_as_well() -> None:
    world = new_service_world(MOR, inserted())
    later = updated(6, ts=4)
    world.table(7).upsert(later.table(), {"hoodie.logfile.data.block.format": "parquet"})
    compacted(world)
    assert world.logs() == 0
    assert world.rows() == contents(MOR, inserted(), later)


def test_logs_that_come_after_the_plan_stay() -> None:
    late = updated(4, ts=7)
    world = new_service_world(MOR, *HISTORY)
    instant = planned(world)
    world.write(late)
    execute(world.context(), COMPACTION, instant)
    assert world.logs() == 2
    assert world.rows() == contents(MOR, *HISTORY, late)
    compacted(world)
    assert world.logs() == 0
    assert world.rows() == contents(MOR, *HISTORY, late)


def test_a_plan_of_the_first_version_names_files_in_full() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = decode_plan(draft(world.context(), COMPACTION, PlanRequest()).content, "")
    operations = tuple(
        replace(
            one,
            data_file_path=f"file:/lake/t/{one.partition_path}/{one.data_file_path}",
            delta_file_paths=tuple(
                f"file:/lake/t/{one.partition_path}/{name}" for name in one.delta_file_paths
            ),
        )
        for one in plan.operations
    )
    old = encode_plan(replace(plan, version=1, operations=operations))
    instant = publish(world.context(), Action.COMPACTION, claims=False, content=old).instant
    execute(world.context(), COMPACTION, instant)
    assert world.logs() == 0
    assert world.rows() == contents(MOR, *HISTORY)


def test_a_slice_whose_rows_are_all_deleted_becomes_an_empty_file() -> None:
    history = (inserted(2), Write("delete", (row("k0", 9, "a"),)))
    world = new_service_world(MOR, *history)
    done = compacted(world)
    assert done.rows_written == 0
    assert world.rows() == contents(MOR, *history)
    again = Write("upsert", (row("k0", 10, "a"),))
    world.write(again)
    assert world.rows() == contents(MOR, *history, again)


def test_columns_that_came_later_are_in_the_new_files() -> None:
    world = new_service_world(MOR, inserted())
    wider = updated(1, ts=4).table().append_column("extra", pa.array(["new"]))
    world.table(7).upsert(wider, evolve=True)
    before = world.table(8).read_arrow().sort_by("id")
    compacted(world)
    after = world.table(9).read_arrow().sort_by("id")
    columns = ["id", "ts", "name", "extra", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert after.select(columns) == before.select(columns)
    assert world.logs() == 0


def test_the_commit_tells_what_was_merged() -> None:
    world = new_service_world(MOR, *HISTORY)
    slices = {one.partition: one for one in world.slices() if one.log_files}
    instant = planned(world)
    execute(world.context(), COMPACTION, instant)
    reported = stats(world, instant)
    first, second = reported["p=a"], reported["p=b"]
    assert (first.num_writes, first.num_update_writes, first.num_deletes) == (3, 2, 0)
    assert (second.num_writes, second.num_update_writes, second.num_deletes) == (2, 1, 1)
    assert (first.total_log_records, first.total_updated_records_compacted) == (3, 2)
    assert first.total_log_files_compacted == first.total_log_blocks == 2
    for partition, stat in reported.items():
        slice_ = slices[partition]
        assert slice_.base_file is not None
        assert stat.prev_commit == slice_.base_instant
        assert stat.prev_base_file == slice_.base_file.name
        assert stat.file_size_in_bytes == stat.total_write_bytes
        assert stat.log_files is None


def test_a_second_attempt_takes_away_what_the_first_has_left() -> None:
    world = new_service_world(MOR, *HISTORY)
    instant = planned(world)
    dead = start(world.context(51), instant).attempt
    assert dead is not None
    COMPACTION.work(world.context(51), dead, world.storage.read(plan_path(world, instant)))
    dead.stop()
    world.clock.advance(10 * 60 * 1000)
    execute(world.context(52), COMPACTION, instant)
    assert world.strays() == set()
    assert all(
        one.base_file and one.base_file.write_token.endswith("-2")
        for one in compacted_slices(world, instant)
    )
    assert world.rows() == contents(MOR, *HISTORY)


def test_an_attempt_that_was_superseded_leaves_nothing() -> None:
    world = new_service_world(MOR, *HISTORY)
    instant = planned(world)
    slow = start(world.context(51), instant).attempt
    assert slow is not None
    slow.stop()
    world.clock.advance(10 * 60 * 1000)
    content = world.storage.read(plan_path(world, instant))
    execute(world.context(52), COMPACTION, instant)
    with pytest.raises(Conflict):
        COMPACTION.work(world.context(51), slow, content)
    assert world.strays() == set()
    assert world.rows(use_metadata=False) == contents(MOR, *HISTORY)


def compacted_slices(world: ServiceWorld, instant: str) -> list:
    return [one for one in world.slices() if one.base_instant == instant]


def plan_path(world: ServiceWorld, instant: str) -> str:
    active = world.snapshot().timeline.active
    (files,) = [one for one in active.files if one.instant.requested == instant]
    assert files.requested is not None
    return files.requested.entry.path


def test_partition_statistics_cover_logs_that_came_after_the_plan() -> None:
    world = new_service_world(MOR, inserted(4), updated(4))
    plan = planned(world)
    world.write(Write("upsert", (row("k0", 99, "a"),)))
    execute(world.context(), COMPACTION, plan)
    assert any(slice_.log_files for slice_ in world.slices())
    statistics = load_snapshot(world.storage).metadata.partition("partition_stats")
    place = "p=a"
    ranges = partition_ranges(statistics, ["v"], [place])
    assert ranges[place]["v"].maximum.as_py() == 99 / 2
