"""Log compaction from the plan to the readers: rows stay as they are, logs become one."""

from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.formats.instant_metadata import commit, compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation, WriteStat
from lakewarden.engine.formats.log.block import Block, BlockKind, Header
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.write import encode_block
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.metadata.reading.column_stats import column_ranges
from lakewarden.engine.services.execution.execute import Execution, execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import (
    Draft,
    PlanRequest,
    Reason,
    Refusal,
    Skipped,
)
from lakewarden.engine.services.planning.schedule import Scheduled, draft, schedule
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.state.plan_scope import plan_scope
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import (
    COW,
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

THRESHOLD = {"hoodie__log__compaction__blocks__threshold": 3}
HISTORY = (
    inserted(),
    updated(ts=2),
    Write("delete", (row("k3", 3, "b"), row("k2", 3, "a"))),
    updated(2, ts=4),
)


@cache
def _history(shape: Shape) -> ServiceWorld:
    return new_service_world(shape, *HISTORY)


def after_history(shape: Shape = MOR) -> ServiceWorld:
    """A table of its own that has seen the history."""
    world = _history(shape).copy()
    # Whatever is written now has other ids than the history.
    world.clock.advance(1000_000)
    return world


def scheduled(world: ServiceWorld, plan_request: PlanRequest | None = None) -> Scheduled:
    answer = schedule(world.context(**THRESHOLD), LOG_COMPACTION, plan_request or PlanRequest())
    assert isinstance(answer, Scheduled), answer
    world.clock.advance(1000)
    return answer


def compacted(world: ServiceWorld) -> Execution:
    done = execute(world.context(**THRESHOLD), LOG_COMPACTION, scheduled(world).instant)
    world.clock.advance(1000)
    return done


def refused(world: ServiceWorld, plan_request: PlanRequest | None = None) -> Refusal:
    answer = draft(world.context(**THRESHOLD), LOG_COMPACTION, plan_request or PlanRequest())
    assert isinstance(answer, Refusal), answer
    return answer


def draft_left_out(world: ServiceWorld) -> tuple[Skipped, ...]:
    return draft(world.context(**THRESHOLD), LOG_COMPACTION, PlanRequest()).skipped


def everything(table: Table) -> list[tuple[object, ...]]:
    """All rows with their meta columns, however they are read."""
    reads = [
        table.read_arrow(),
        table.read_arrow(use_metadata=False),
        table.read_arrow(mode="read_optimized"),
    ]
    return [tuple(sorted(map(str, rows.to_pylist()))) for rows in reads]


def new_logs(world: ServiceWorld, instant: str) -> list[tuple[LogFile, list[Block]]]:
    return [
        (log, list(read_blocks(world.storage.read(slice_.path(log)), log.name)))
        for slice_ in world.slices()
        for log in slice_.log_files
        if log.instant == instant
    ]


def completed_of(world: ServiceWorld, instant: str) -> Instant:
    active = world.table(97).timeline()
    (found,) = [one for one in active.with_time(instant) if one.is_completed]
    return found


def stats_of(world: ServiceWorld, instant: str) -> list[WriteStat]:
    active = world.table(97).timeline()
    completed = completed_of(world, instant)
    metadata = commit.decode(active.read(completed), active.path(completed))
    assert metadata.operation_type == Operation.LOG_COMPACT
    assert metadata.compacted
    return [stat for stats in metadata.partition_to_write_stats.values() for stat in stats]


@pytest.mark.parametrize("shape", [MOR, FLAT_MOR, Shape("mor", has_metadata=False)], ids=str)
def test_readers_see_the_same_rows_to_the_last_meta_column(shape: Shape) -> None:
    world = after_history(shape)
    before = everything(world.table(60))
    compacted(world)
    assert everything(world.table(61)) == before
    assert world.rows() == contents(shape, *HISTORY)


def test_it_completes_as_a_delta_commit_of_what_java_says() -> None:
    world = after_history()
    bases = {slice_.file_id: slice_.base_instant for slice_ in world.slices()}
    done = compacted(world)
    assert completed_of(world, done.instant).action is Action.DELTA_COMMIT
    for stat in stats_of(world, done.instant):
        assert stat.prev_commit == bases[stat.file_id]
        assert (stat.log_version, stat.base_file, stat.log_offset) == (1, "", 0)
        assert stat.log_files == (stat.path.rpartition("/")[2],)  # type: ignore[union-attr]
        assert stat.num_writes == stat.num_update_writes == 2
        assert stat.num_deletes == 1
        assert stat.total_updated_records_compacted == 3
        assert stat.total_log_files_compacted == stat.total_log_blocks == 3
        assert stat.total_log_records == 5


def test_the_new_log_is_a_block_of_records_and_then_one_of_deletes() -> None:
    world = after_history()
    writes = [one.requested for one in world.table(60).timeline().completed()][1:]
    done = compacted(world)
    logs = new_logs(world, done.instant)
    assert len(logs) == 2
    for log, blocks in logs:
        assert log.version == 1
        assert [block.kind for block in blocks] == [BlockKind.AVRO, BlockKind.DELETE]
        for block in blocks:
            assert block.instant == done.instant
            assert block.compacted_instants == tuple(writes)


def test_records_keep_their_own_commit_time() -> None:
    world = after_history()
    compacted(world)
    rows = world.table(60).read_arrow().to_pylist()
    known = {one.requested for one in world.table(60).timeline().completed()[:-1]}
    assert {one["_hoodie_commit_time"] for one in rows} <= known
    assert all(one["_hoodie_commit_seqno"].startswith(one["_hoodie_commit_time"]) for one in rows)


def test_logs_that_come_later_stay_in_force() -> None:
    world = after_history()
    compacted(world)
    later = (updated(4, ts=9), Write("delete", (row("k0", 10, "a"),)))
    world.write(*later)
    assert world.rows() == contents(MOR, *HISTORY, *later)
    assert world.rows(use_metadata=False) == world.rows()


@pytest.mark.parametrize("compacts", [True, False])
def test_a_delete_reaches_as_far_as_its_ordering_value(compacts: bool) -> None:
    """Rows of a bucket go to its log whether their keys are there or not."""
    clock = ManualClock()
    world = ServiceWorld(clock, fresh_memory_storage(clock=clock))
    schema = pa.schema([("id", "string"), ("ts", "int64"), ("_hoodie_is_deleted", "bool")])
    Table.create(
        "",
        schema,
        key=["id"],
        ordering=["ts"],
        type="mor",
        index="BUCKET",
        properties={"hoodie.bucket.index.num.buckets": "1"},
        storage=world.storage,
        ports=ports(clock, 1),
    )

    def write(seed: int, key: str, ts: int, *, deletes: bool = False) -> None:
        values = {"id": key, "ts": ts, "_hoodie_is_deleted": deletes}
        world.table(seed).upsert(pa.Table.from_pylist([values], schema=schema))
        clock.advance(1000)

    write(2, "a", 5)
    write(3, "b", 5)
    write(4, "a", 7, deletes=True)
    if compacts:
        compacted(world)
    for seed, ts, found in ((6, 6, None), (7, 8, 8)):
        write(seed, "a", ts)
        rows = world.table(30).read_arrow().to_pylist()
        assert {one["id"]: one["ts"] for one in rows}.get("a") == found


def test_a_log_compaction_of_log_compactions_needs_as_many_new_blocks() -> None:
    world = after_history()
    first = compacted(world)
    assert refused(world).reason is Reason.NOTHING_TO_DO
    more = (updated(ts=11), updated(ts=12))
    world.write(*more)
    second = compacted(world)
    for _, blocks in new_logs(world, second.instant):
        assert blocks[0].compacted_instants[0] == first.instant
        assert len(blocks[0].compacted_instants) == 3
    assert world.rows() == contents(MOR, *HISTORY, *more)


def test_time_travel_sees_each_moment_as_it_was() -> None:
    world = after_history()
    moments = [one.requested for one in world.table(60).timeline().completed()]
    before = [str(world.table(61).read_arrow(as_of=one).to_pylist()) for one in moments]
    done = compacted(world)
    after = [str(world.table(61).read_arrow(as_of=one).to_pylist()) for one in moments]
    assert after == before
    at_last = world.table(62).read_arrow(as_of=done.instant).to_pylist()
    assert sorted(map(str, at_last)) == sorted(map(str, world.table(62).read_arrow().to_pylist()))


def test_changes_are_the_same_in_every_window() -> None:
    world = after_history()
    late = Write("upsert", (row("k4", 1, "a"), row("k5", 1, "b")))
    world.write(late, updated(2, ts=8))

    def changes() -> list[tuple[str, str | None, list[str]]]:
        windows = [*((since, None) for since in times), (times[1], times[3])]
        return [
            (
                since,
                until,
                sorted(map(str, world.table(61).changes_arrow(since, until).to_pylist())),
            )
            for since, until in windows
        ]

    times = ["0", *(one.completed or "" for one in world.table(60).timeline().completed())]
    before = changes()
    compacted(world)
    assert changes() == before


def test_nothing_is_a_change_that_was_only_compacted() -> None:
    world = after_history()
    last = world.table(60).timeline().completed()[-1].completed
    assert last is not None
    compacted(world)
    assert len(world.table(61).changes_arrow(last, None)) == 0


def test_the_new_log_has_statistics_of_its_own() -> None:
    world = after_history()
    done = compacted(world)
    metadata = load_snapshot(world.storage).metadata.partition("column_stats")
    names = {log.name for log, _ in new_logs(world, done.instant)}
    for partition in ("p=a", "p=b"):
        files = column_ranges(metadata, ["ts"], [partition])[partition]
        (own,) = [files[name]["ts"] for name in files if name in names]
        assert (own.minimum, own.maximum) == (pa.scalar(2), pa.scalar(4))


def test_a_plan_names_all_logs_of_a_file_group() -> None:
    world = after_history()
    slices = {slice_.key: slice_ for slice_ in world.slices()}
    answer = scheduled(world)
    plan = compaction.decode_plan(answer.draft.content, "plan")
    assert {one.file_id for one in plan.operations} == {key.file_id for key in slices}
    for one in plan.operations:
        (slice_,) = [s for s in slices.values() if s.file_id == one.file_id]
        assert one.delta_file_paths == tuple(log.name for log in slice_.log_files)
        assert one.data_file_path == (slice_.base_file and slice_.base_file.name)
    scope = plan_scope(Action.LOG_COMPACTION, answer.draft.content, "plan")
    assert scope.groups == answer.draft.groups
    assert scope.is_cancellable


def test_it_is_immutable_only_if_asked_for() -> None:
    world = after_history()
    answer = scheduled(world, PlanRequest(cancellable=False))
    assert not plan_scope(Action.LOG_COMPACTION, answer.draft.content, "plan").is_cancellable


def test_groups_of_a_pending_plan_are_left_to_it_and_come_back() -> None:
    world = after_history()
    plan = scheduled(world)
    refusal = refused(world)
    assert {one.held_by for one in refusal.skipped} == {plan.instant}
    assert refusal.missing_partitions == ("p=a", "p=b")


def test_what_a_wish_leaves_out_comes_back() -> None:
    world = after_history()
    drafted = draft(world.context(**THRESHOLD), LOG_COMPACTION, PlanRequest(partitions=("p=a",)))
    assert isinstance(drafted, Draft)
    assert {key.partition for key in drafted.groups} == {"p=a"}
    plan = compaction.decode_plan(drafted.content, "plan")
    assert plan.missing_schedule_partitions == drafted.missing_partitions == ("p=b",)


def test_too_few_blocks_are_named() -> None:
    world = new_service_world(MOR, inserted(), updated())
    assert {one.reason for one in refused(world).skipped} == {Reason.BELOW_THRESHOLD}


def test_copy_on_write_tables_have_no_logs() -> None:
    assert refused(new_service_world(COW, inserted())).reason is Reason.WRONG_TABLE_TYPE


def test_everything_may_be_deleted() -> None:
    gone = Write("delete", tuple(row(f"k{n}", 20, "ab"[n % 2]) for n in range(6)))
    world = after_history()
    world.write(gone)
    done = compacted(world)
    assert [b.kind for _, blocks in new_logs(world, done.instant) for b in blocks] == [
        BlockKind.DELETE,
        BlockKind.DELETE,
    ]
    assert world.rows() == []


def test_it_gives_way_to_a_compaction_that_somebody_has_planned_meanwhile() -> None:
    """Java plans compactions of file groups that a log compaction is about."""
    world = after_history()
    before = everything(world.table(60))
    plan = scheduled(world)
    theirs = compaction.decode_plan(plan.draft.content, "plan")
    theirs = replace(theirs, strategy=None, preserve_hoodie_metadata=False, extra_metadata={})
    publish(world.context(), Action.COMPACTION, compaction.encode_plan(theirs), claims=False)
    with pytest.raises(Conflict) as refused:
        execute(world.context(**THRESHOLD), LOG_COMPACTION, plan.instant)
    assert refused.value.code == "plan_conflict"
    assert everything(world.table(61)) == before
    assert world.strays() == set()


def test_a_plan_with_partial_records_is_refused_by_name() -> None:
    world = after_history()
    (slice_, *_) = world.slices()
    log = slice_.log_files[0]
    path = slice_.path(log)
    blocks = read_blocks(world.storage.read(path), path)
    partial = [
        encode_block(block.kind, {**block.headers, Header.IS_PARTIAL: "true"}, block.content)
        for block in blocks
    ]
    plan = scheduled(world)
    world.storage.put(path, b"".join(partial))
    with pytest.raises(InvalidRequest) as caught:
        execute(world.context(**THRESHOLD), LOG_COMPACTION, plan.instant)
    assert caught.value.code == "unsupported_partial_log_compaction"
    skipped = {one.file_id: one.reason for one in draft_left_out(world)}
    assert skipped[slice_.file_id] is Reason.PARTIAL_RECORDS
