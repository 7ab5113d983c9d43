"""Plans of clustering: which files come together, which are skipped, and the bytes of a plan."""

from collections.abc import Sequence

import pytest

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.replace import ClusteringStrategy, decode_plan
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.clustering.plan import (
    ClusterGroup,
    ClusteringLimits,
    PartitionFilter,
    plan_bytes,
    select_groups,
)
from lakewarden.engine.services.clustering.settings import FilterMode, plan_strategy
from lakewarden.engine.services.planning.plan_request import PlanRequest, Reason
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.golden_tables import GoldenTable

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
PREFIX = "hoodie.clustering.plan.strategy."


def limits(**others: object) -> ClusteringLimits:
    given = {
        "small_file_bytes": 100,
        "target_file_bytes": 100,
        "group_bytes_max": 200,
        "groups_max": 30,
        "takes_single": True,
        "new_base_bytes": 120,
    }
    return ClusteringLimits(**{**given, **others})


def slice_of(file_id: str, size: int | None, *, partition: str = "a", logs: int = 0) -> FileSlice:
    base = (
        None if size is None else BaseFile(f"{file_id}.parquet", file_id, "", "1", "parquet", size)
    )
    files = tuple(LogFile(f".{file_id}.log.{n}", file_id, "2", n, "0-0-0", 7) for n in range(logs))
    return FileSlice(partition, file_id, "1", base, files)


def slices(*sizes: int, partition: str = "a") -> list[FileSlice]:
    return [slice_of(f"f{n}", size, partition=partition) for n, size in enumerate(sizes)]


def sizes(groups: Sequence[ClusterGroup]) -> list[list[int]]:
    return [[one.base_file.size_bytes if one.base_file else 0 for one in g.slices] for g in groups]


def test_groups_go_from_large_files_to_small_ones_and_stay_within_their_size() -> None:
    found = select_groups(slices(10, 90, 60, 80, 40), {}, limits())
    assert sizes(found.chosen) == [[90, 80], [60, 40, 10]]
    assert [group.outputs for group in found.chosen] == [2, 2]
    assert found.skipped == ()


def test_partitions_do_not_mix_and_keep_their_order() -> None:
    given = [*slices(10, 20, partition="b"), *slices(30, partition="a")]
    found = select_groups(given, {}, limits())
    assert [group.slices[0].partition for group in found.chosen] == ["b", "a"]


def test_large_files_are_left_alone_for_good() -> None:
    found = select_groups(slices(100, 99), {}, limits())
    assert sizes(found.chosen) == [[99]]
    assert [(one.reason, one.comes_back) for one in found.skipped] == [(Reason.LARGE_ENOUGH, False)]


def test_a_slice_without_a_base_file_counts_as_a_whole_one() -> None:
    given = [slice_of("f0", None, logs=1), slice_of("f1", 90), slice_of("f2", 90)]
    found = select_groups(given, {}, limits())
    assert sizes(found.chosen) == [[0], [90, 90]]
    assert [group.outputs for group in found.chosen] == [2, 2]


def test_what_another_plan_holds_comes_back() -> None:
    found = select_groups(slices(10, 20), {FileGroupId("a", "f0"): "77"}, limits())
    assert sizes(found.chosen) == [[20]]
    (held,) = found.skipped
    assert (held.reason, held.held_by, held.comes_back) == (Reason.HELD_BY_PLAN, "77", True)
    assert found.missing_partitions == ("a",)


def test_a_file_alone_is_left_out_if_nothing_is_sorted() -> None:
    found = select_groups(slices(90, 80, 70), {}, limits(takes_single=False, group_bytes_max=170))
    assert sizes(found.chosen) == [[90, 80]]
    assert [(one.reason, one.comes_back) for one in found.skipped] == [(Reason.ALONE, False)]


def test_groups_over_the_limit_come_back() -> None:
    found = select_groups(slices(90, 80, 70, 60, 50), {}, limits(groups_max=2))
    assert sizes(found.chosen) == [[90, 80], [70, 60, 50]]
    found = select_groups(slices(90, 80, 70, 60, 50), {}, limits(groups_max=1))
    assert sizes(found.chosen) == [[90, 80]]
    assert {(one.reason, one.comes_back) for one in found.skipped} == {(Reason.OVER_LIMIT, True)}
    assert len(found.skipped) == 3


@pytest.mark.parametrize(
    ("plan_request", "expected"),
    [
        (PlanRequest(max_bytes=120), [[90], [30]]),
        (PlanRequest(max_file_groups=3), [[90, 80], [30]]),
        (PlanRequest(max_bytes=5), []),
    ],
)
def test_the_limits_of_a_wish_cut_groups_short(
    plan_request: PlanRequest, expected: list[list[int]]
) -> None:
    found = select_groups(
        slices(90, 80, 30, 20), {}, limits(plan_request=plan_request, group_bytes_max=170)
    )
    assert sizes(found.chosen) == expected
    assert len(found.skipped) == 4 - sum(map(len, expected))
    assert all(one.comes_back for one in found.skipped)


def test_a_single_file_strategy_makes_one_file_of_each() -> None:
    strategy = plan_strategy("a.b.SparkSingleFileSortPlanStrategy")
    given = limits(is_file_by_file=strategy.is_file_by_file, target_file_bytes=10)
    found = select_groups(slices(90, 80), {}, given)
    assert sizes(found.chosen) == [[90], [80]]
    assert [group.outputs for group in found.chosen] == [1, 1]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("SparkSizeBasedClusteringPlanStrategy", None),
        ("org.x.JavaSizeBasedClusteringPlanStrategy", None),
        ("SparkRecentDaysClusteringPlanStrategy", FilterMode.RECENT_DAYS),
        ("SparkSelectedPartitionsClusteringPlanStrategy", FilterMode.SELECTED_PARTITIONS),
    ],
)
def test_strategies_are_known_by_the_names_of_hudis_classes(
    name: str, mode: FilterMode | None
) -> None:
    assert plan_strategy(name).mode is mode


def chosen(partitions: Sequence[str] = DAYS, hour: int = 0, **arguments: object) -> tuple[str, ...]:
    settings = Settings.of(
        arguments={
            ("hoodie.clustering." if name.startswith("plan.") else PREFIX) + name: value
            for name, value in ((key.replace("__", "."), one) for key, one in arguments.items())
        }
    )
    filter_ = PartitionFilter.of(settings, None, wished=None, hour=hour)
    found = filter_.choose(partitions)
    assert {*found.chosen, *found.missing_partitions} == set(partitions)
    assert not set(found.chosen) & set(found.missing_partitions)
    return found.chosen


MODE = "plan__partition__filter__mode"


def test_without_a_filter_all_partitions_are_looked_at() -> None:
    assert chosen() == DAYS


def test_recent_days_are_the_last_ones_newest_first() -> None:
    assert chosen(**{MODE: "RECENT_DAYS"}) == DAYS[:1:-1]
    skipped = {"daybased__skipfromlatest__partitions": 1, "daybased__lookback__partitions": 1}
    assert chosen(**{MODE: "RECENT_DAYS"}, **skipped) == (DAYS[2],)
    assert chosen(**{MODE: "RECENT_DAYS"}, daybased__lookback__partitions=0) == DAYS[::-1]


def test_selected_partitions_are_those_of_a_range_with_both_ends() -> None:
    ends = {"cluster__begin__partition": DAYS[1], "cluster__end__partition": DAYS[2]}
    assert chosen(**{MODE: "SELECTED_PARTITIONS"}, **ends) == DAYS[1:3]
    assert chosen(**{MODE: "SELECTED_PARTITIONS"}, cluster__begin__partition=DAYS[2]) == DAYS[2:]


def test_day_rolling_takes_another_part_every_hour() -> None:
    many = tuple(f"p{number:02}" for number in range(50))
    taken = [chosen(many, hour, **{MODE: "DAY_ROLLING"}) for hour in range(24)]
    assert taken[1] == ("p01", "p25", "p49")
    assert sorted(sum(taken, ())) == list(many)


def test_a_pattern_has_to_match_the_whole_path() -> None:
    assert chosen(partition__regex__pattern="2026-01-0[12]") == DAYS[:2]
    assert chosen(partition__regex__pattern="2026") == ()
    with pytest.raises(InvalidRequest, match="not a pattern"):
        chosen(partition__regex__pattern="(")


def test_partitions_named_go_before_the_pattern() -> None:
    named = f"{DAYS[3]},{DAYS[0]}"
    assert chosen(partition__selected=named, partition__regex__pattern="x") == (DAYS[0], DAYS[3])


def test_a_plan_is_written_as_java_writes_it(golden: GoldenTable) -> None:
    folder = golden("mor_clustering_requested")
    (path,) = (folder / ".hoodie" / "timeline").glob("*.clustering.requested")
    javas = decode_plan(path.read_bytes(), path.name)
    assert javas.clustering_plan is not None
    storage = open_storage(Location(str(folder)))
    state = load_snapshot(storage)
    groups = state.file_groups(state.visibility(), None, use_metadata=True)
    given = limits(
        small_file_bytes=300 << 20,
        target_file_bytes=1 << 30,
        group_bytes_max=2 << 30,
        new_base_bytes=120 << 20,
    )
    chosen_groups = select_groups([group.latest_merged() for group in groups], {}, given).chosen
    strategy = javas.clustering_plan.strategy
    assert isinstance(strategy, ClusteringStrategy)
    ours = plan_bytes(
        storage,
        chosen_groups,
        strategy,
        new_base_bytes=given.new_base_bytes,
        missing_partitions=(),
        extra={},
    )
    made_at, here = "file:/tmp/hudi-golden/mor_clustering_requested", storage.uri("")
    assert decode_plan(ours, "ours") == _elsewhere(javas, made_at, here)


def _elsewhere(plan: object, old: str, new: str) -> object:
    """The same plan of a table that lies elsewhere."""
    if isinstance(plan, str):
        return plan.replace(old, new)
    if isinstance(plan, tuple):
        return tuple(_elsewhere(one, old, new) for one in plan)
    fields = getattr(plan, "__dataclass_fields__", None)
    if fields is None:
        return plan
    return type(plan)(**{name: _elsewhere(getattr(plan, name), old, new) for name in fields})
