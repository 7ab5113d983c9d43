"""Slicing by completion time, by name, around pending compactions, and back in time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.file_names import DataFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice, Visibility, file_groups

ID = "f-0"


@dataclass(frozen=True)
class Completed:
    """Completion times by requested time."""

    times: Mapping[str, str] = field(default_factory=dict)

    def completion_time(self, requested: str) -> str | None:
        return self.times.get(requested)

    def is_completed(self, requested: str) -> bool:
        return requested in self.times


def base(instant: str, file_id: str = ID) -> DataFile:
    return _parsed(f"{file_id}_0-0-0_{instant}.parquet")


def log(instant: str, token: str = "0-0-0", file_id: str = ID) -> DataFile:
    return _parsed(f".{file_id}_{instant}.log.1_{token}")


def _parsed(name: str) -> DataFile:
    file = parse_file_name(name, 1)
    assert file is not None
    return file


def slices(files: list[DataFile], visibility: Visibility) -> list[FileSlice]:
    groups = file_groups("p", files, visibility)
    return [slice_ for group in groups for slice_ in group.slices]


def shape(slice_: FileSlice) -> tuple[str, bool, list[str]]:
    return (
        slice_.base_instant,
        slice_.base_file is not None,
        [log_file.instant for log_file in slice_.log_files],
    )


def test_log_completed_after_compaction_belongs_to_its_slice_though_requested_before() -> None:
    visibility = Visibility(Completed({"10": "11", "12": "25", "20": "21"}))
    found = slices([base("10"), log("12"), base("20")], visibility)
    assert [shape(slice_) for slice_ in found] == [("10", True, []), ("20", True, ["12"])]


def test_log_completed_at_the_very_base_instant_belongs_to_that_base() -> None:
    visibility = Visibility(Completed({"10": "11", "12": "20", "20": "21"}))
    found = slices([base("10"), log("12"), base("20")], visibility)
    assert shape(found[1]) == ("20", True, ["12"])


def test_log_without_an_older_base_begins_its_own_slice() -> None:
    visibility = Visibility(Completed({"10": "11", "12": "13"}))
    found = slices([log("10"), log("12")], visibility)
    assert [shape(slice_) for slice_ in found] == [("10", False, ["10", "12"])]


def test_files_of_pending_instants_are_invisible() -> None:
    visibility = Visibility(Completed({"10": "11"}))
    found = slices([base("10"), log("12"), base("20")], visibility)
    assert [shape(slice_) for slice_ in found] == [("10", True, [])]


def test_group_of_only_pending_files_is_no_group() -> None:
    assert file_groups("p", [base("10")], Visibility(Completed())) == ()


def test_pending_compaction_begins_a_slice_that_reading_joins_to_the_one_below() -> None:
    visibility = Visibility(
        Completed({"10": "11", "12": "13", "22": "23"}),
        pending_compactions={FileGroupId("p", ID): "20"},
    )
    (group,) = file_groups("p", [base("10"), log("12"), log("22")], visibility)
    assert [shape(slice_) for slice_ in group.slices] == [
        ("10", True, ["12"]),
        ("20", False, ["22"]),
    ]
    assert group.slices[1].is_pending
    assert shape(group.latest_merged()) == ("10", True, ["12", "22"])


def test_base_file_of_an_unfinished_compaction_is_ignored() -> None:
    visibility = Visibility(
        Completed({"10": "11", "22": "23"}), pending_compactions={FileGroupId("p", ID): "20"}
    )
    (group,) = file_groups("p", [base("10"), base("20"), log("22")], visibility)
    assert shape(group.latest_merged()) == ("10", True, ["22"])


def test_latest_base_skips_slices_without_base_and_drops_logs() -> None:
    visibility = Visibility(
        Completed({"10": "11", "12": "13", "22": "23"}),
        pending_compactions={FileGroupId("p", ID): "20"},
    )
    (group,) = file_groups("p", [base("10"), log("12"), log("22")], visibility)
    latest = group.latest_base()
    assert latest is not None
    assert shape(latest) == ("10", True, [])


def test_names_decide_in_version_six() -> None:
    visibility = Visibility(Completed({"10": "10", "20": "20"}), names_decide=True)
    found = slices([base("10"), log("10"), base("20"), log("20", "1-0-0")], visibility)
    assert [shape(slice_) for slice_ in found] == [("10", True, ["10"]), ("20", True, ["20"])]


def test_time_travel_hides_later_files() -> None:
    visibility = Visibility(Completed({"10": "11", "12": "13", "14": "15"}), as_of="12")
    found = slices([base("10"), log("12"), log("14")], visibility)
    assert shape(found[0]) == ("10", True, ["12"])


def test_replaced_group_is_gone_but_not_before_it_was_replaced() -> None:
    completed = Completed({"10": "11", "20": "21"})
    replaced = {FileGroupId("p", ID): "20"}
    assert file_groups("p", [base("10")], Visibility(completed, replaced=replaced)) == ()
    earlier = Visibility(completed, replaced=replaced, as_of="15")
    assert len(file_groups("p", [base("10")], earlier)) == 1


def test_same_file_id_in_another_partition_is_not_replaced() -> None:
    visibility = Visibility(Completed({"10": "11"}), replaced={FileGroupId("q", ID): "20"})
    assert len(file_groups("p", [base("10")], visibility)) == 1


def test_groups_are_sorted_whatever_the_listing_order() -> None:
    visibility = Visibility(Completed({"10": "11"}))
    files = [base("10", "b-0"), base("10", "a-0")]
    assert [group.key.file_id for group in file_groups("p", files, visibility)] == ["a-0", "b-0"]
