"""Every golden table gives the rows that Java gives, with the metadata table and without."""

from collections.abc import Mapping
from typing import Any

import pytest

from lakewarden import InvalidRequest, Table
from tests.canonical import canonical_rows, difference
from tests.captured_rows import images_of
from tests.golden_expectations import (
    CHANGE_CORRECTIONS,
    CLEANED_PAST,
    CLEANED_WINDOWS,
    CORRECTIONS,
    NEWEST_CORRECTIONS,
    SAVED_PAST,
    Correction,
    corrected,
)
from tests.golden_tables import (
    GOLDEN_TABLES,
    SHARED_ROW_COUNTS,
    SHARED_TABLES,
    GoldenDocument,
    GoldenTable,
)

JAVA_CANNOT_READ = "mor_keygen_custom"
EVERYTHING = "000"
METADATA = pytest.mark.parametrize("use_metadata", [True, False], ids=["metadata", "listing"])
READABLE = [name for name in GOLDEN_TABLES if name != JAVA_CANNOT_READ]


def assert_rows(
    name: str,
    expected: dict[str, Any],
    found: Any,
    corrections: Mapping[str, Correction] = CORRECTIONS,
) -> None:
    assert difference(corrected(name, expected["rows"], corrections), canonical_rows(found)) == ""


@METADATA
@pytest.mark.parametrize("name", READABLE)
def test_snapshot(
    name: str, use_metadata: bool, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    expected = golden_document(name)["expected"]["snapshot"]
    found = Table(str(golden(name))).read_arrow(use_metadata=use_metadata)
    assert_rows(name, expected, found, NEWEST_CORRECTIONS)


@pytest.mark.parametrize("name", READABLE)
def test_batches_give_the_rows_of_a_snapshot(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    table = Table(str(golden(name)))
    rows = [row for batch in table.read_batches() for row in batch.to_pylist()]
    assert len(rows) == len(golden_document(name)["expected"]["snapshot"]["rows"])


@METADATA
@pytest.mark.parametrize("name", READABLE)
def test_read_optimized(
    name: str, use_metadata: bool, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    answers = golden_document(name)["expected"]
    # On a copy-on-write table it is the snapshot, which Java was not asked twice.
    expected = answers.get("read_optimized", answers["snapshot"])
    table = Table(str(golden(name)))
    found = table.read_arrow(mode="read_optimized", use_metadata=use_metadata)
    assert_rows(name, expected, found)


@METADATA
@pytest.mark.parametrize("name", READABLE)
def test_time_travel(
    name: str, use_metadata: bool, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    expected = golden_document(name)["expected"]["as_of"]
    table = Table(str(golden(name)))
    if name in CLEANED_PAST:
        with pytest.raises(InvalidRequest) as refused:
            table.read_arrow(as_of=expected["instant"], use_metadata=use_metadata)
        assert refused.value.code == "history_cleaned"
        return
    found = table.read_arrow(as_of=expected["instant"], use_metadata=use_metadata)
    if name in SAVED_PAST:
        assert set(found["id"].to_pylist()) == SAVED_PAST[name]
        assert max(found["_hoodie_commit_time"].to_pylist()) == expected["instant"]
        return
    assert_rows(name, expected, found)


@pytest.mark.parametrize("name", READABLE)
def test_changes(name: str, golden: GoldenTable, golden_document: GoldenDocument) -> None:
    table = Table(str(golden(name)))
    for window in golden_document(name)["expected"]["incremental"]:
        if (name, window["end"]) in CLEANED_WINDOWS and window["begin"] != EVERYTHING:
            with pytest.raises(InvalidRequest) as refused:
                table.changes_arrow(window["begin"], window["end"])
            assert refused.value.code == "history_cleaned"
        elif "rows" in window:
            expected = corrected(name, window["rows"], CHANGE_CORRECTIONS)
            found = table.changes_arrow(window["begin"], window["end"])
            assert difference(expected, canonical_rows(found)) == ""


@pytest.mark.parametrize("name", ["cow_cdc_before_after", "cow_cdc_op_key"])
def test_captured_changes(name: str, golden: GoldenTable, golden_document: GoldenDocument) -> None:
    table = Table(str(golden(name)))
    windows = golden_document(name)["expected"]["cdc"]
    assert len(windows) == 3
    for window in windows:
        found = table.changes_arrow(window["begin"], window["end"], mode="cdc").to_pylist()
        assert difference(images_of(window["rows"]), images_of(found)) == ""


def test_rows_that_java_cannot_read_are_those_that_were_written(golden: GoldenTable) -> None:
    found = canonical_rows(Table(str(golden(JAVA_CANNOT_READ))).read_arrow())
    assert len(found) == 6
    assert all(isinstance(row["ts"], int) for row in found)


@METADATA
@pytest.mark.parametrize("name", SHARED_TABLES)
def test_tables_of_the_rust_implementation(
    name: str, use_metadata: bool, golden: GoldenTable
) -> None:
    found = Table(str(golden(name))).read_arrow(use_metadata=use_metadata)
    assert len(found) == (SHARED_ROW_COUNTS[name] or 0)
