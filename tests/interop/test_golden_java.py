"""Golden tables: what we read, and how we see timeline and files, equals what Java does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakewarden import LakewardenError, Table
from tests.canonical import Row, canonical_rows, difference
from tests.golden_expectations import SAVED_PAST
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable
from tests.interop.differences import (
    JAVA_CANNOT_READ,
    JAVA_CRASHES_ON_LATER_CHANGES,
    JAVA_NEEDS_OPTIONS,
    JAVA_READS_CHANGES_DIFFERENTLY,
    JAVA_READS_DIFFERENTLY,
    WE_REFUSE_WHAT_WAS_CLEANED,
)
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused

COMPARED = [name for name in GOLDEN_TABLES if name not in JAVA_CANNOT_READ | JAVA_READS_DIFFERENTLY]
CHANGES_COMPARED = [name for name in COMPARED if name not in JAVA_READS_CHANGES_DIFFERENTLY]

JavaReads = Callable[..., list[Row]]


@pytest.fixture
def java_reads(java: JavaJudge, golden: GoldenTable) -> JavaReads:
    """`java_reads(name, ...)`: rows of a golden table, read with the options that it needs."""

    def read(name: str, **how: Any) -> list[Row]:
        return java.read(golden(name), options=JAVA_NEEDS_OPTIONS.get(name), **how)

    return read


def ours(table: Path, **how: Any) -> list[Row]:
    return canonical_rows(Table(str(table)).read_arrow(**how))


def rows_or_refusal(read: Callable[[], list[Row]]) -> list[Row] | str:
    """Rows, or the code of the error that says why there are none."""
    try:
        return read()
    except LakewardenError as error:
        return error.code


@pytest.mark.parametrize("use_metadata", [True, False], ids=["metadata", "listing"])
@pytest.mark.parametrize("name", COMPARED)
def test_snapshot(
    name: str, use_metadata: bool, java_reads: JavaReads, golden: GoldenTable
) -> None:
    expected = java_reads(name, metadata=use_metadata)
    assert not difference(expected, ours(golden(name), use_metadata=use_metadata))


@pytest.mark.parametrize("name", COMPARED)
def test_read_optimized(name: str, java_reads: JavaReads, golden: GoldenTable) -> None:
    expected = java_reads(name, read_optimized=True)
    assert not difference(expected, ours(golden(name), mode="read_optimized"))


@pytest.mark.parametrize("name", COMPARED)
def test_as_of(
    name: str, java_reads: JavaReads, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    documented = golden_document(name)["expected"]["as_of"]
    instant = documented["instant"]
    found = rows_or_refusal(lambda: ours(golden(name), as_of=instant))
    if isinstance(found, str):
        assert found == "history_cleaned"
        assert "error" in documented or name in WE_REFUSE_WHAT_WAS_CLEANED
    elif name in SAVED_PAST:
        with pytest.raises(Refused, match="cleaned up"):
            java_reads(name, as_of=instant)
    else:
        assert not difference(java_reads(name, as_of=instant), found)


@pytest.mark.parametrize("name", CHANGES_COMPARED)
def test_changes(
    name: str, java_reads: JavaReads, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    table = Table(str(golden(name)))
    for documented in golden_document(name)["expected"]["incremental"]:
        begin, end = documented["begin"], documented["end"]
        found = rows_or_refusal(
            lambda begin=begin, end=end: canonical_rows(table.changes_arrow(begin, end))
        )
        if isinstance(found, str):
            assert "error" in documented or name in WE_REFUSE_WHAT_WAS_CLEANED, found
        else:
            expected = java_reads(name, window=[begin, end])
            assert not difference(expected, found), f"window {begin} to {end}"


@pytest.mark.parametrize("name", sorted(JAVA_READS_CHANGES_DIFFERENTLY))
def test_java_still_reads_changes_differently(
    name: str, java_reads: JavaReads, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    window, *_ = golden_document(name)["expected"]["incremental"]
    begin, end = window["begin"], window["end"]
    found = canonical_rows(Table(str(golden(name))).changes_arrow(begin, end))
    assert difference(java_reads(name, window=[begin, end]), found)


@pytest.mark.parametrize("name", sorted(JAVA_CRASHES_ON_LATER_CHANGES))
def test_later_changes_are_the_newer_rows_of_the_snapshot(name: str, golden: GoldenTable) -> None:
    table = Table(str(golden(name)))
    first, *_ = table.timeline().instants
    newer = [row for row in ours(golden(name)) if str(row["_hoodie_commit_time"]) > first.requested]
    assert newer
    assert not difference(newer, canonical_rows(table.changes_arrow(str(first.completed))))


@pytest.mark.parametrize("name", sorted(WE_REFUSE_WHAT_WAS_CLEANED))
def test_a_window_that_was_cleaned_is_still_refused(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    table = Table(str(golden(name)))
    windows = golden_document(name)["expected"]["incremental"]
    answers = [
        rows_or_refusal(
            lambda window=window: canonical_rows(
                table.changes_arrow(window["begin"], window["end"])
            )
        )
        for window in windows
    ]
    assert "history_cleaned" in answers


@pytest.mark.parametrize("name", sorted(JAVA_CANNOT_READ))
def test_what_java_cannot_read_we_read(
    name: str, java_reads: JavaReads, golden: GoldenTable
) -> None:
    with pytest.raises(Refused):
        java_reads(name)
    assert ours(golden(name))


@pytest.mark.parametrize("name", sorted(JAVA_READS_DIFFERENTLY))
def test_java_still_reads_differently(
    name: str, java_reads: JavaReads, golden: GoldenTable
) -> None:
    expected, found = java_reads(name), ours(golden(name))
    assert difference(expected, found)
    assert len(expected) == len(found)


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_timeline(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    found = [
        {
            "requested": instant.requested,
            "action": instant.action.value,
            "state": instant.state.name,
            "completed": instant.completed,
        }
        for instant in Table(str(golden(name))).timeline().instants
    ]
    assert found == java.timeline(golden(name))["active"]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_file_slices(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in Table(str(golden(name))).file_slices():
        found.setdefault(one.partition, []).append(
            {
                "file_id": one.file_id,
                "base_instant": one.base_instant,
                "base_file": one.base_file.name if one.base_file else None,
                "log_files": [log.name for log in one.log_files],
            }
        )
    for slices in found.values():
        slices.sort(key=lambda one: one["file_id"])
    expected = {
        partition: [without_change_logs(one) for one in slices["latest"]]
        for partition, slices in java.file_slices(golden(name))["partitions"].items()
        if slices["latest"]
    }
    assert found == expected


def without_change_logs(file_slice: dict[str, Any]) -> dict[str, Any]:
    """Java lists logs of change data with the slice, though no read merges them."""
    logs = [log for log in file_slice["log_files"] if not log.endswith(".cdc")]
    return file_slice | {"log_files": logs}
