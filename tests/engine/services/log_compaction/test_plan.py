"""Which file groups a log compaction takes, decided from values alone."""

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import CompactionStrategy
from lakewarden.engine.services.log_compaction.plan import (
    Counted,
    LogCompactionLimits,
    plan_of,
    select_groups,
    sift,
)
from lakewarden.engine.services.planning.plan_request import Reason, Skipped


def slice_of(
    file_id: str, logs: int = 5, *, partition: str = "p", log_bytes: int = 10
) -> FileSlice:
    files = tuple(
        LogFile(f".{file_id}_{number}.log.1_0-0-1", file_id, str(number), 1, "0-0-1", log_bytes)
        for number in range(logs)
    )
    return FileSlice(partition, file_id, "0", None, files)


def counted(file_id: str, blocks: int = 5, **what: object) -> Counted:
    return Counted(slice_of(file_id), blocks, instants=blocks, **what)  # type: ignore[arg-type]


def chosen(*candidates: Counted, **limits: int | None) -> list[str]:
    selection = select_groups(candidates, LogCompactionLimits(**{"blocks_min": 5, **limits}))  # type: ignore[arg-type]
    return [slice_.file_id for slice_ in selection.chosen]


def reasons(skipped: tuple[Skipped, ...]) -> dict[str | None, Reason]:
    return {one.file_id: one.reason for one in skipped}


def test_slices_without_logs_held_or_filtered_are_not_looked_into() -> None:
    bare, held, other, free = (
        slice_of("bare", 0),
        slice_of("held"),
        slice_of("other", partition="q"),
        slice_of("free"),
    )
    selection = sift([bare, held, other, free], {held.key: "77"}, ["p"])
    assert selection.chosen == (free,)
    assert reasons(selection.skipped) == {
        "bare": Reason.NO_LOGS,
        "held": Reason.HELD_BY_PLAN,
        "other": Reason.PARTITION_FILTERED,
    }
    assert selection.missing_partitions == ("p", "q")
    assert [one.held_by for one in selection.skipped] == [None, "77", None]


def test_what_has_no_logs_does_not_come_back() -> None:
    assert sift([slice_of("bare", 0)], {}).missing_partitions == ()


def test_as_many_blocks_as_the_threshold_are_enough() -> None:
    assert chosen(counted("a", 4), counted("b", 5), counted("c", 6)) == ["b", "c"]


def test_too_few_blocks_come_back_with_the_next_write_only() -> None:
    selection = select_groups([counted("a", 4)], LogCompactionLimits(blocks_min=5))
    assert reasons(selection.skipped) == {"a": Reason.BELOW_THRESHOLD}
    assert selection.missing_partitions == ()


def test_blocks_of_one_instant_are_not_compacted_again() -> None:
    assert chosen(Counted(slice_of("a"), blocks=2, instants=1), blocks_min=1) == []


def test_partial_records_are_left_to_compaction() -> None:
    selection = select_groups(
        [counted("a", has_partial_records=True)], LogCompactionLimits(blocks_min=5)
    )
    assert reasons(selection.skipped) == {"a": Reason.PARTIAL_RECORDS}


def test_a_full_plan_takes_those_with_most_blocks_and_names_the_rest() -> None:
    candidates = [counted("a", 6), counted("b", 9), counted("c", 7)]
    selection = select_groups(candidates, LogCompactionLimits(blocks_min=5, groups_max=2))
    assert [slice_.file_id for slice_ in selection.chosen] == ["b", "c"]
    assert reasons(selection.skipped) == {"a": Reason.OVER_LIMIT}
    assert selection.missing_partitions == ("p",)


def test_bytes_count_until_they_are_used_up() -> None:
    assert chosen(counted("a"), counted("b"), counted("c"), bytes_max=120) == ["a", "b"]


def test_a_slice_that_is_too_large_leaves_room_for_smaller_ones() -> None:
    large = Counted(slice_of("large", log_bytes=100), 9, 9)
    assert chosen(large, counted("small"), bytes_max=60) == ["small"]


def test_the_plan_is_as_java_would_make_it_but_says_whether_it_may_be_cancelled() -> None:
    plan = plan_of([slice_of("a", 2)], is_cancellable=True, missing_partitions=("q",))
    assert plan.strategy == CompactionStrategy(
        compactor_class_name="org.apache.hudi.table.action.compact.LogCompactionExecutionHelper",
        strategy_params={},
        version=1,
    )
    assert plan.preserve_hoodie_metadata is True
    assert plan.version == 2
    assert plan.extra_metadata == {"lakewarden.cancellable": "true"}
    assert plan.missing_schedule_partitions == ("q",)
    (operation,) = plan.operations
    assert operation.delta_file_paths == (".a_0.log.1_0-0-1", ".a_1.log.1_0-0-1")
