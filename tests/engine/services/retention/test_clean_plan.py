"""The plan of a clean: which slices go, and what keeps those that are old and stay."""

import pytest

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.services.retention.clean_plan import (
    CleanSelection,
    Cut,
    FileHold,
    FileHolder,
    PartitionView,
    select,
)
from lakewarden.engine.services.retention.settings import CleanRetention

VERSIONS = CleanRetention(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions=2)


def base(instant: int) -> BaseFile:
    return BaseFile(f"f_0-0-1_{instant}.parquet", "f", "0-0-1", str(instant), "parquet", 10)


def log(instant: int, *, is_cdc: bool = False) -> LogFile:
    suffix = ".cdc" if is_cdc else ""
    name = f".f_{instant}.log.1_0-0-1{suffix}"
    return LogFile(name, "f", str(instant), 1, "0-0-1", 1, is_cdc)


def slice_of(instant: int, *logs: int, has_base: bool = True, pending: bool = False) -> FileSlice:
    return FileSlice(
        "p",
        "f",
        str(instant),
        base(instant) if has_base else None,
        tuple(log(one) for one in logs),
        is_pending=pending,
    )


def chosen(*slices: FileSlice, cut: Cut | None = None, **view: object) -> CleanSelection:
    group = FileGroup(FileGroupId("p", "f"), slices)
    return select([PartitionView(partition="p", groups=[group], **view)], cut or cut_at(5))


def cut_at(horizon: int, **held: FileHolder) -> Cut:
    named = {("p", name): holder for name, holder in held.items()}
    return Cut(horizon=str(horizon), retention=CleanRetention(), held=named)


def names(found: CleanSelection) -> list[str]:
    return [file.name for file in found.files]


def test_all_before_the_last_slice_that_is_older_than_the_horizon_goes_newest_first() -> None:
    found = chosen(slice_of(1, 2), slice_of(3), slice_of(4), slice_of(5), slice_of(6))
    assert names(found) == [base(3).name, base(1).name, log(2).name]
    assert [(one.base_instant, one.hold) for one in found.kept] == [
        ("4", FileHold.RETAINED),
        ("5", FileHold.RETAINED),
    ]


def test_the_only_slice_stays_however_old_it_is() -> None:
    found = chosen(slice_of(1, 2, 3))
    assert not found.files
    assert not found.kept


def test_a_slice_that_awaits_compaction_replaces_nothing() -> None:
    found = chosen(slice_of(1), slice_of(2), slice_of(3, 4, has_base=False, pending=True))
    assert names(found) == [base(1).name]


def test_what_was_captured_goes_with_its_slice() -> None:
    captured = [log(1, is_cdc=True), log(3, is_cdc=True), log(5, is_cdc=True)]
    found = chosen(slice_of(1), slice_of(3), slice_of(4), slice_of(5), captured=captured)
    assert names(found) == [base(3).name, captured[1].name, base(1).name, captured[0].name]


def test_a_slice_stays_whole_while_somebody_needs_one_of_its_files() -> None:
    saved = FileHolder(FileHold.SAVEPOINT, "2")
    found = chosen(slice_of(1, 2), slice_of(3), slice_of(4), cut=cut_at(5, **{log(2).name: saved}))
    assert names(found) == [base(3).name]
    assert ("1", FileHold.SAVEPOINT, "2") in {
        (one.base_instant, one.hold, one.held_by) for one in found.kept
    }


@pytest.mark.parametrize(("replaced_at", "goes"), [(4, True), (5, False), (6, False)])
def test_a_replaced_group_goes_once_its_replacement_is_older_than_the_horizon(
    replaced_at: int, goes: bool
) -> None:
    key = FileGroupId("p", "f")
    found = chosen(slice_of(1), replaced={key: str(replaced_at)}, names=frozenset({base(1).name}))
    assert bool(found.files) is goes
    assert found.partitions == (("p",) if goes else ())
    assert bool(found.kept) is not goes


def test_a_partition_with_files_that_nobody_has_committed_yet_stays() -> None:
    there = frozenset({base(1).name, base(9).name})
    found = chosen(slice_of(1), replaced={FileGroupId("p", "f"): "2"}, names=there)
    assert names(found) == [base(1).name]
    assert not found.partitions


def test_the_folder_of_the_table_itself_is_never_removed() -> None:
    only = FileSlice("", "f", "1", base(1))
    group = FileGroup(FileGroupId("", "f"), (only,))
    view = PartitionView(
        partition="", groups=[group], replaced={group.key: "2"}, names=frozenset({base(1).name})
    )
    found = select([view], cut_at(5))
    assert names(found) == [base(1).name]
    assert not found.partitions


def test_versions_are_slices_with_a_base_file() -> None:
    cut = Cut(horizon=None, retention=VERSIONS)
    found = chosen(
        slice_of(1, 2, has_base=False),
        slice_of(3),
        slice_of(4),
        slice_of(5),
        slice_of(6, 7, has_base=False, pending=True),
        cut=cut,
    )
    assert names(found) == [base(3).name, log(2).name]
    assert not found.kept


def test_versions_of_a_replaced_group_do_not_count() -> None:
    cut = Cut(horizon=None, retention=VERSIONS)
    found = chosen(slice_of(8), replaced={FileGroupId("p", "f"): "9"}, cut=cut)
    assert names(found) == [base(8).name]
