"""Clustering tables in memory: the rows stay, the files become fewer, and readers see no other."""

import math
import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.metadata.reading.column_stats import column_ranges
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.services.clustering.order import RowOrder
from lakewarden.engine.services.clustering.run import ClusteringWork as ClusteringRun
from lakewarden.engine.services.clustering.run import with_nan_notes
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.clustering.settings import LayoutStrategy
from lakewarden.engine.services.clustering.tasks import ClusterSpec, ClusterTask, NanNotes
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest, Reason, Refusal
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.table.schema import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, RECORD_KEY
from lakewarden.engine.write.settings import write_spec
from tests.engine.services.clustering.clustered_tables import clustered, scheduled
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import PARTITIONED_RECORD_INDEX, Shape

SORT = "hoodie__clustering__plan__strategy__sort__columns"
LAYOUT = "hoodie__layout__optimize__strategy"
TARGET = "hoodie__clustering__plan__strategy__target__file__max__bytes"
# Row groups of a few rows are worth copying.
COPIED = {"lakewarden__clustering__copied_rows_min": "1"}
OWN = [COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, "id", "p", "ts", "v", "name"]
BUCKETS = "x.SparkConsistentBucketClustering"


def more(number: int, *, partitions: str = "ab", count: int = 6) -> Write:
    """Rows that are not there yet."""
    places = len(partitions)
    keys = range(100 * number, 100 * number + count)
    return Write("bulk_insert", tuple(row(f"k{n}", 1, partitions[n % places]) for n in keys))


def world_of(shape: Shape = COW, *history: Write) -> ServiceWorld:
    """A table with several small files in each partition."""
    return new_service_world(shape, *(history or (more(1), more(2), more(3))))


def own_rows(world: ServiceWorld) -> pa.Table:
    """Rows with what they keep when they are rewritten."""
    return (
        world.table(97).read_arrow(columns=OWN).sort_by([("id", "ascending"), ("p", "ascending")])
    )


def base_rows(world: ServiceWorld) -> dict[str, pa.Table]:
    """The rows of each live base file as they lie there."""
    return {
        slice_.base_file.name: pq.read_table(
            pa.BufferReader(world.storage.read(slice_.path(slice_.base_file)))
        )
        for slice_ in world.slices()
        if slice_.base_file is not None
    }


def overwrite(world: ServiceWorld, slice_: FileSlice, rows: pa.Table) -> None:
    """Put rows in the place of a base file, without anything in its footer."""
    stream = pa.BufferOutputStream()
    pq.write_table(rows, stream, store_schema=False)
    world.storage.put(slice_.path(slice_.base_file), stream.getvalue().to_pybytes())


def metadata_of(world: ServiceWorld, instant: str) -> ReplaceCommitMetadata:
    active = world.table(96).timeline()
    (completed,) = (one for one in active.completed() if one.requested == instant)
    return replace_payload.decode(active.read(completed), active.path(completed))


@pytest.mark.parametrize("shape", [COW, Shape("mor", has_metadata=False)], ids=str)
@pytest.mark.parametrize("arguments", [{}, COPIED], ids=["encoded", "copied"])
def test_the_files_of_a_partition_become_one(shape: Shape, arguments: dict[str, str]) -> None:
    world = world_of(shape)
    before, files = own_rows(world), len(world.slices())
    done = clustered(world, **arguments)
    assert (files, len(world.slices())) == (6, 2)
    assert own_rows(world).equals(before)
    assert (done.files, done.rows_written) == (2, len(before))
    assert world.rows() == world.rows(use_metadata=False)


@pytest.mark.parametrize("arguments", [{}, COPIED], ids=["encoded", "copied"])
def test_rows_name_the_file_they_are_in(arguments: dict[str, str]) -> None:
    world = world_of()
    clustered(world, **arguments)
    for name, rows in base_rows(world).items():
        assert pc.all(pc.equal(rows.column(FILE_NAME), name)).as_py()


def test_row_groups_are_copied_if_they_are_large_enough() -> None:
    world = world_of()
    clustered(world, **COPIED)
    files = [pa.BufferReader(world.storage.read(s.path(s.base_file))) for s in world.slices()]
    assert [pq.ParquetFile(file).num_row_groups for file in files] == [3, 3]


def test_small_row_groups_are_encoded_together_beside_large_ones() -> None:
    world = world_of(COW, more(1, count=40), more(2), more(3))
    before = own_rows(world)
    clustered(world, lakewarden__clustering__copied_rows_min="10")
    files = [pa.BufferReader(world.storage.read(s.path(s.base_file))) for s in world.slices()]
    assert [pq.ParquetFile(file).num_row_groups for file in files] == [2, 2]
    assert own_rows(world).equals(before)
    for name, rows in base_rows(world).items():
        assert pc.all(pc.equal(rows.column(FILE_NAME), name)).as_py()


def test_logs_are_merged() -> None:
    deleted = Write("delete", (row("k1", 9, "b"),))
    history = (inserted(), updated(4), deleted)
    world = world_of(MOR, *history)
    assert world.logs()
    clustered(world)
    assert not world.logs()
    assert world.rows() == contents(MOR, *history)
    assert world.rows() == world.rows(use_metadata=False)


def test_slices_of_logs_alone_become_files() -> None:
    world = new_service_world(MOR, inserted(), updated())
    clustered(world)
    assert all(slice_.base_file and not slice_.log_files for slice_ in world.slices())


@pytest.mark.parametrize("layout", ["LINEAR", "ZORDER", "HILBERT"])
def test_rows_are_sorted_within_their_file(layout: str) -> None:
    world = world_of()
    before = own_rows(world)
    clustered(world, **{SORT: "name,v", LAYOUT: layout})
    assert own_rows(world).equals(before)
    assert len(world.slices()) == 2
    if layout == "LINEAR":
        for rows in base_rows(world).values():
            names = rows.column("name").to_pylist()
            assert names == sorted(names)


def test_a_group_too_large_for_memory_is_sorted_in_ranges() -> None:
    world = world_of(MOR, more(1), more(2), updated(), more(3))
    before = own_rows(world)
    clustered(world, **{SORT: "id"}, lakewarden__clustering__sorted_together_bytes="1000")
    assert own_rows(world).equals(before)
    for rows in base_rows(world).values():
        keys = rows.column("id").to_pylist()
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    "arguments", [{}, {SORT: "ts,id"}, COPIED], ids=["as is", "sorted", "copied"]
)
def test_a_plan_says_into_how_many_files_a_group_goes(arguments: dict[str, str]) -> None:
    world = world_of()
    before = own_rows(world)
    size = sum(slice_.size_bytes for slice_ in world.slices())
    clustered(world, **arguments, **{TARGET: str(size // 4 + 1)})
    assert len(world.slices()) == 4
    assert own_rows(world).equals(before)


def test_one_file_can_become_several() -> None:
    world = world_of(COW, more(1, count=30))
    before = own_rows(world)
    size = world.slices()[0].size_bytes
    clustered(world, **{TARGET: str(size // 3 + 1)})
    assert len(world.slices()) == 6
    assert own_rows(world).equals(before)


def test_a_partition_without_rows_gets_no_file() -> None:
    history = (inserted(2), Write("delete", (row("k0", 9, "a"),)))
    world = world_of(MOR, *history)
    done = clustered(world)
    assert done.files == 1
    assert world.rows() == contents(MOR, *history)


def test_the_commit_is_javas() -> None:
    world = world_of()
    replaced = {slice_.file_id for slice_ in world.slices()}
    done = clustered(world)
    metadata = metadata_of(world, done.instant)
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    assert (metadata.operation_type, metadata.compacted) == (Operation.CLUSTER, False)
    assert list(metadata.extra_metadata) == ["schema"]
    found = {one for ids in metadata.partition_to_replace_file_ids.values() for one in ids}
    assert found == replaced
    assert all(stat.num_inserts == stat.num_writes > 0 for stat in stats)
    assert {stat.prev_commit for stat in stats} == {"null"}
    assert {stat.file_size_in_bytes for stat in stats} == {
        slice_.size_bytes for slice_ in world.slices()
    }


@pytest.mark.parametrize(
    ("index", "arguments"),
    [
        ("RECORD_INDEX", COPIED),
        ("RECORD_INDEX", {SORT: "id"}),
        (PARTITIONED_RECORD_INDEX, COPIED),
    ],
)
def test_the_record_index_learns_where_keys_live(index: str, arguments: dict[str, str]) -> None:
    shape = Shape("mor", index=index)
    world = world_of(shape)
    clustered(world, **arguments)
    state = load_snapshot(world.storage)
    shards = state.metadata.record_index()
    homes = {slice_.key for slice_ in world.slices()}
    located = all_locations(shards)
    assert {one.file_group_id for one in located} == homes
    assert len(located) == len(own_rows(world))
    world.write(Write("upsert", (row("k100", 5, "a"),)))
    assert len(own_rows(world)) == len(located)


@pytest.mark.parametrize(
    "files",
    [
        [[1.5, float("nan")], [2.5, 3.5]],
        [[float("nan")], [1.5]],
        [[float("nan")], [float("nan")]],
        [[0.0, 2.0], [1.5]],
        [[0.0, float("nan")], [1.5]],
    ],
)
def test_statistics_know_of_nan(files: list[list[float]]) -> None:
    world = new_service_world(COW)
    for number, values in enumerate(files):
        rows = [
            {**row(f"k{number} {place}", 1, "a"), "v": value} for place, value in enumerate(values)
        ]
        world.write(Write("bulk_insert", tuple(rows)))
    clustered(world, **COPIED)
    (slice_,) = world.slices()
    state = load_snapshot(world.storage)
    statistics = state.metadata.partition(COLUMN_STATS)
    found = column_ranges(statistics, ["v", "ts"], ["p=a"])["p=a"][slice_.base_file.name]
    every = [value for values in files for value in values]
    assert math.isnan(found["v"].maximum.as_py()) == any(map(math.isnan, every))
    assert found["v"].value_count == len(every)
    assert found["ts"].minimum.as_py() == 1


def test_values_are_looked_at_where_statistics_do_not_tell_of_nan() -> None:
    values = ((0.0, 2.0), (1.0, 3.0))
    world = new_service_world(COW)
    for number, pair in enumerate(values):
        rows = ({**row(f"k{number} {v}", 1, "a"), "v": v} for v in pair)
        world.write(Write("bulk_insert", tuple(rows)))
    for slice_ in world.slices():
        # As Java leaves it: a file with a NaN, and a zero in the statistics.
        rows = base_rows(world)[slice_.base_file.name]
        kept = pc.if_else(pc.equal(rows.column("v"), 2.0), float("nan"), rows.column("v"))
        overwrite(world, slice_, rows.set_column(rows.schema.get_field_index("v"), "v", kept))
    clustered(world, **COPIED)
    (slice_,) = world.slices()
    statistics = load_snapshot(world.storage).metadata.partition(COLUMN_STATS)
    found = column_ranges(statistics, ["v"], ["p=a"])["p=a"][slice_.base_file.name]["v"]
    assert math.isnan(found.maximum.as_py())


def test_a_bound_of_zero_does_not_tell_whether_there_is_nan() -> None:
    values = (0.0, 2.0, float("nan"))
    rows = [{**row(f"k{number}", 1, "a"), "v": value} for number, value in enumerate(values)]
    world = new_service_world(COW, *(Write("bulk_insert", (one,)) for one in rows))
    state = load_snapshot(world.storage)
    spec = write_spec(state, state.schema(), world.context(50).settings, instant="2026")
    (task,) = with_nan_notes(state, spec, [ClusterTask(0, "p=a", world.slices(), ("f-0",))])
    by_value = {
        rows.column("v")[0].as_py(): task.nan.unknown[name]
        for name, rows in base_rows(world).items()
    }
    assert (by_value[0.0], by_value[2.0]) == (("v",), ())
    assert task.nan.known == {"v"}


def test_copied_and_encoded_files_have_the_same_statistics() -> None:
    found = []
    for arguments in ({}, COPIED):
        world = world_of()
        clustered(world, **arguments)
        (slice_,) = (one for one in world.slices() if one.partition == "p=a")
        statistics = load_snapshot(world.storage).metadata.partition(COLUMN_STATS)
        names = ["id", "p", "ts", "v", "name", COMMIT_TIME, RECORD_KEY]
        found.append(column_ranges(statistics, names, ["p=a"])["p=a"][slice_.base_file.name])
    assert found[0] == found[1]
    assert len(found[0]) == 7


def test_files_without_a_filter_get_one_of_their_keys() -> None:
    world = world_of(Shape("cow", index="BLOOM"))
    for slice_ in world.slices():
        overwrite(world, slice_, base_rows(world)[slice_.base_file.name])
    clustered(world, **COPIED)
    world.write(Write("upsert", (row("k100", 5, "a"),)))
    for slice_ in world.slices():
        source = pa.BufferReader(world.storage.read(slice_.path(slice_.base_file)))
        keys = key_footer(pq.ParquetFile(source).metadata)
        filter_ = keys.bloom_filter("f")
        assert filter_ is not None
        found = pq.read_table(source, columns=[RECORD_KEY]).column(RECORD_KEY)
        assert filter_.might_contain(found).all()
        assert (keys.min_key, keys.max_key) == (min(found.to_pylist()), max(found.to_pylist()))
    assert len(world.rows()) == 18


def test_tasks_travel_to_other_processes() -> None:
    world = world_of()
    spec = ClusterSpec(
        write=write_spec(
            load_snapshot(world.storage),
            load_snapshot(world.storage).schema(),
            world.context(50).settings,
            instant="20260101000000000",
        ),
        order=RowOrder(("ts", "id"), LayoutStrategy.HILBERT, 100),
        copied_rows_min=1,
        sorted_together_bytes=1,
    )
    task = ClusterTask(3, "p=a", world.slices()[:2], ("f-0",), NanNotes(frozenset({"v"})))
    assert pickle.loads(pickle.dumps(task)) == task
    assert pickle.loads(pickle.dumps(ClusteringRun(spec))).spec.order == spec.order


def test_a_plan_waits_and_names_what_it_takes() -> None:
    world = world_of()
    plan = scheduled(world)
    assert plan.draft.groups == {slice_.key for slice_ in world.slices()}
    again = schedule(world.context(52), CLUSTERING, PlanRequest())
    assert isinstance(again, Refusal)
    assert (again.reason, again.missing_partitions) == (Reason.HELD_BY_PLAN, ("p=a", "p=b"))
    assert {one.held_by for one in again.skipped} == {plan.instant}


def test_an_explicit_wish_does_not_wait_for_the_trigger() -> None:
    world = world_of()
    refused = schedule(world.context(52), CLUSTERING, PlanRequest(honour_trigger=True))
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TRIGGER_NOT_REACHED
    world.write(more(7))
    assert isinstance(
        schedule(world.context(53), CLUSTERING, PlanRequest(honour_trigger=True)), Scheduled
    )


def test_a_predicate_on_partition_columns_limits_the_plan() -> None:
    world = world_of()
    found = schedule(world.context(52), CLUSTERING, PlanRequest(filter=[("p", "=", "b")]))
    assert isinstance(found, Scheduled)
    assert {key.partition for key in found.draft.groups} == {"p=b"}
    assert found.draft.missing_partitions == ("p=a",)


def test_a_predicate_on_other_columns_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="partition columns"):
        schedule(world_of().context(52), CLUSTERING, PlanRequest(filter=[("ts", ">", 3)]))


def test_named_partitions_are_taken_whatever_the_window_says() -> None:
    world = world_of()
    found = scheduled(world, hoodie__clustering__plan__strategy__partition__selected="p=b,p=z")
    assert {key.partition for key in found.draft.groups} == {"p=b"}


def test_buckets_are_not_clustered() -> None:
    world = new_service_world(Shape("mor", index="BUCKET"), inserted())
    with pytest.raises(InvalidRequest, match="bucket") as refusal:
        schedule(world.context(50), CLUSTERING, PlanRequest())
    assert refusal.value.code == "unsupported_clustering_of_buckets"


@pytest.mark.parametrize(
    "arguments",
    [
        {"hoodie__clustering__plan__strategy__class": f"{BUCKETS}PlanStrategy"},
        {"hoodie__clustering__execution__strategy__class": f"{BUCKETS}ExecutionStrategy"},
    ],
)
def test_unknown_strategies_are_refused_by_name(arguments: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="ConsistentBucket"):
        schedule(world_of().context(50, **arguments), CLUSTERING, PlanRequest())


def test_rows_can_only_be_sorted_by_columns_of_the_table() -> None:
    with pytest.raises(InvalidRequest, match="'other'"):
        schedule(world_of().context(50, **{SORT: "other"}), CLUSTERING, PlanRequest())


def test_a_cancellable_plan_gives_way_to_a_write() -> None:
    world = world_of()
    plan = scheduled(world)
    world.write(Write("upsert", (row("k100", 5, "a"),)))
    assert not world.table(60).timeline().with_time(plan.instant)
    with pytest.raises((InvalidRequest, Conflict)):
        execute(world.context(51), CLUSTERING, plan.instant)
    assert [one["ts"] for one in world.rows() if one["id"] == "k100"] == [5]


def test_an_immutable_plan_keeps_writes_away() -> None:
    world = world_of()
    plan = scheduled(world, PlanRequest(cancellable=False))
    with pytest.raises(Conflict):
        world.write(Write("upsert", (row("k100", 5, "a"),)))
    execute(world.context(51), CLUSTERING, plan.instant)
    assert len(world.slices()) == 2


def test_new_rows_do_not_go_into_files_that_are_about_to_be_clustered() -> None:
    world = world_of()
    before = {slice_.base_file.name for slice_ in world.slices()}
    scheduled(world, PlanRequest(cancellable=False))
    world.write(Write("insert", (row("n1", 1, "a"),)))
    assert before < {slice_.base_file.name for slice_ in world.slices()}


def test_columns_that_came_later_are_null_in_older_rows() -> None:
    world = world_of(COW, more(1))
    wider = more(2).table().append_column("extra", pa.array(range(6)))
    world.table(70).bulk_insert(wider, evolve=True)
    world.clock.advance(1000)
    clustered(world, **COPIED)
    found = world.table(71).read_arrow(columns=["id", "extra"])
    values = dict(zip(*(found.column(n).to_pylist() for n in ("id", "extra")), strict=True))
    assert (values["k100"], values["k203"], len(values)) == (None, 3, 12)
    assert len(world.slices()) == 2


def test_limits_of_the_caller_are_kept() -> None:
    world = world_of()
    plan = scheduled(world, PlanRequest(max_file_groups=2))
    assert len(plan.draft.groups) == 2
    assert plan.draft.missing_partitions == ("p=a", "p=b")
    assert {one.reason for one in plan.draft.skipped} == {Reason.OVER_LIMIT}


def test_a_plan_travels_with_its_layout() -> None:
    world = world_of()
    plan = scheduled(world, **{SORT: "ts,id", LAYOUT: "zorder"})
    decoded = replace_payload.decode_plan(plan.draft.content, "a plan").clustering_plan
    assert decoded is not None
    assert decoded.strategy is not None
    assert decoded.strategy.strategy_params == {
        "hoodie.clustering.plan.strategy.sort.columns": "ts,id",
        "hoodie.layout.optimize.strategy": "ZORDER",
    }
    before = own_rows(world)
    execute(world.context(51), CLUSTERING, plan.instant)
    assert own_rows(world).equals(before)
