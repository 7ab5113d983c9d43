"""Strategies: each chooses what Hudi's class of that name chooses, and the rest comes back."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.compaction.plan import Rules, select_file_slices
from lakewarden.engine.services.compaction.strategies import (
    Candidate,
    Composite,
    LogFileSizeBased,
    SelectionStrategy,
    chosen_strategy,
    date_of,
)
from lakewarden.engine.services.planning.plan_request import PlanRequest, Reason

MB = 1 << 20
TODAY = date(2026, 11, 18)
PACKAGE = "org.apache.hudi.table.action.compact.strategy"
DAYS = ("2026/11/07", "2026/11/08", "2026/11/17", "2026/11/18", "2026/12/24")


def candidate(
    name: str, base_mb: int = 0, logs: tuple[int, ...] = (MB,), partition: str = "p"
) -> Candidate:
    base = BaseFile(f"{name}_0-0-1_1.parquet", name, "0-0-1", "1", "parquet", base_mb * MB)
    files = tuple(
        LogFile(f".{name}_{at}.log.1_0-0-1", name, str(at), 1, "0-0-1", size)
        for at, size in enumerate(logs, start=2)
    )
    return Candidate(FileSlice(partition, name, "1", base if base_mb else None, files), 120 * MB)


def strategy(name: str, **values: object) -> SelectionStrategy:
    keys = {f"hoodie.compaction.{key.replace('__', '.')}": value for key, value in values.items()}
    settings = Settings.of(arguments={"hoodie.compaction.strategy": name, **keys})
    return chosen_strategy(settings, TODAY)


def chosen(strategy: SelectionStrategy, *candidates: Candidate) -> list[str]:
    selection = strategy.groups(candidates)
    everything = {one.slice.file_id for one in selection.chosen} | {
        one.file_id for one in selection.skipped
    }
    assert everything == {one.slice.file_id for one in candidates}
    assert all(one.comes_back for one in selection.skipped)
    return [one.slice.file_id for one in selection.chosen]


def test_the_default_takes_the_largest_logs_first() -> None:
    default = chosen_strategy(Settings(), TODAY)
    assert isinstance(default, LogFileSizeBased)
    few, many = candidate("few", 1, (5,)), candidate("many", 1, (3, 4))
    assert chosen(default, few, many) == ["many", "few"]


def test_logs_of_fewer_bytes_than_the_threshold_are_left_out() -> None:
    by_size = strategy("LogFileSizeBased", logfile__size__threshold=7)
    groups = [candidate("six", 1, (6,)), candidate("seven", 1, (7,))]
    assert chosen(by_size, *groups) == ["seven"]
    (skipped,) = by_size.groups(groups).skipped
    assert skipped.reason is Reason.BELOW_THRESHOLD
    assert skipped.log_files == 1


def test_logs_can_be_counted_instead() -> None:
    by_number = strategy("LogFileNumBased", logfile__num__threshold=2)
    one, two = candidate("one", 1, (99,)), candidate("two", 1, (1, 1))
    assert chosen(by_number, one, two, candidate("three", 1, (1, 1, 1))) == ["three", "two"]


@pytest.mark.parametrize("name", ["BoundedIO", "LogFileSizeBased", "LogFileNumBased", "DayBased"])
def test_what_crosses_the_bound_is_still_taken(name: str) -> None:
    # Each reads 11 MB and writes 10.
    groups = [candidate(str(number), 10, (MB,)) for number in range(3)]
    assert chosen(strategy(name, target__io=21), *groups) == ["0"]
    assert chosen(strategy(name, target__io=22), *groups) == ["0", "1"]
    assert chosen(strategy(name, target__io=0), *groups) == []


def test_a_slice_without_a_base_file_counts_as_one_of_full_size() -> None:
    metrics = candidate("logs", 0, (MB, MB // 2)).operation.metrics
    assert metrics == {
        "TOTAL_LOG_FILES": 2,
        "TOTAL_IO_MB": 121,
        "TOTAL_IO_READ_MB": 1,
        "TOTAL_LOG_FILES_SIZE": 1.5 * MB,
        "TOTAL_IO_WRITE_MB": 120,
    }


def test_without_bounds_everything_is_taken_as_it_comes() -> None:
    groups = [candidate(str(number), 999_999) for number in range(3)]
    assert chosen(strategy("UnBounded", target__io=1), *groups) == ["0", "1", "2"]


def test_the_newest_days_are_taken_and_the_others_come_back() -> None:
    by_day = strategy("DayBased", daybased__target__partitions=2)
    selection = by_day.partitions(["y=2026/m=11/d=07", "y=2026/m=12/d=24", "y=2026/m=11/d=18"])
    assert selection.chosen == ("y=2026/m=12/d=24", "y=2026/m=11/d=18")
    assert selection.missing_partitions == ("y=2026/m=11/d=07",)


def test_the_last_days_and_those_to_come_are_taken() -> None:
    bounded = strategy("BoundedPartitionAware", daybased__target__partitions=10)
    selection = bounded.partitions(DAYS)
    assert selection.chosen == ("2026/12/24", "2026/11/18", "2026/11/17", "2026/11/08")
    assert selection.missing_partitions == ("2026/11/07",)


def test_a_second_strategy_takes_what_that_one_leaves_out() -> None:
    bounded = strategy("BoundedPartitionAware", daybased__target__partitions=10)
    unbounded = strategy("UnBoundedPartitionAware", daybased__target__partitions=10)
    assert unbounded.partitions(DAYS).chosen == bounded.partitions(DAYS).missing_partitions
    assert unbounded.partitions(DAYS).missing_partitions == tuple(
        sorted(bounded.partitions(DAYS).chosen)
    )


def test_a_pattern_is_looked_for_anywhere_in_a_path() -> None:
    by_regex = strategy("PartitionRegexBased", partition__path__regex="11/0")
    selection = by_regex.partitions(DAYS)
    assert selection.chosen == ("2026/11/07", "2026/11/08")
    assert selection.skipped[0].reason is Reason.PARTITION_FILTERED
    assert selection.missing_partitions == ("2026/11/17", "2026/11/18", "2026/12/24")


def test_several_strategies_are_applied_one_after_the_other() -> None:
    both = strategy(
        f"{PACKAGE}.PartitionRegexBasedCompactionStrategy, LogFileNumBased",
        partition__path__regex="2026/11",
        logfile__num__threshold=2,
    )
    assert isinstance(both, Composite)
    assert both.partitions(DAYS).missing_partitions == ("2026/12/24",)
    assert chosen(both, candidate("one"), candidate("two", 1, (1, 1))) == ["two"]


def test_days_joined_by_dashes_are_days_too() -> None:
    assert date_of("2026-11-18") == date_of("day=2026-11-18") == TODAY


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("MyOwnStrategy", "unsupported_strategy"),
        ("Composite", "unsupported_strategy"),
        ("PartitionRegexBased", "bad_setting"),
    ],
)
def test_what_means_nothing_is_refused(name: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        strategy(name)
    assert refusal.value.code == code


def test_partitions_that_are_no_days_are_refused_by_strategies_that_go_by_days() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        strategy("DayBased").partitions(["a", "2026/02/30"])
    assert refusal.value.code == "no_day_partition"
    assert strategy("DayBased").partitions(["alone"]).chosen == ("alone",)


@given(
    sizes=st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9 * MB), min_size=1))),
    target=st.integers(0, 60),
    name=st.sampled_from(["BoundedIO", "LogFileSizeBased", "LogFileNumBased", "UnBounded"]),
    plan_request=st.builds(
        PlanRequest,
        max_bytes=st.none() | st.integers(0, 40 * MB),
        max_file_groups=st.none() | st.integers(0, 5),
    ),
)
def test_whatever_is_not_chosen_comes_back_and_bounds_are_kept(
    sizes: list[tuple[int, list[int]]], target: int, name: str, plan_request: PlanRequest
) -> None:
    groups = [candidate(str(n), base, tuple(logs)) for n, (base, logs) in enumerate(sizes)]
    by_name = strategy(name, target__io=target, logfile__size__threshold=MB)
    rules = Rules(strategy=by_name, plan_request=plan_request, new_base_bytes=120 * MB)
    selection = select_file_slices([one.slice for one in groups], rules)
    names = [one.slice.file_id for one in selection.chosen]
    names += [str(one.file_id) for one in selection.skipped]
    assert sorted(names) == sorted(one.slice.file_id for one in groups)
    assert all(one.comes_back for one in selection.skipped)
    assert (
        plan_request.max_file_groups is None
        or len(selection.chosen) <= plan_request.max_file_groups
    )
    taken = sum(one.slice.size_bytes for one in selection.chosen)
    assert plan_request.max_bytes is None or taken <= plan_request.max_bytes
    if name != "UnBounded" and selection.chosen:
        assert sum(one.io_mb for one in selection.chosen[:-1]) < max(target, 1)
