"""The golden tables unpack completely, with their times, and without archive junk."""

from datetime import UTC, datetime

import pytest

from tests.golden_tables import (
    GOLDEN_TABLES,
    SHARED_ROW_COUNTS,
    SHARED_TABLES,
    GoldenDocument,
    GoldenTable,
)


@pytest.mark.parametrize("name", [*GOLDEN_TABLES, *SHARED_TABLES])
def test_every_archive_unpacks_to_one_table(name: str, golden: GoldenTable) -> None:
    table = golden(name)
    assert (table / ".hoodie" / "hoodie.properties").is_file()
    assert not list(table.rglob("._*"))


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_every_golden_table_has_a_document(name: str, golden_document: GoldenDocument) -> None:
    document = golden_document(name)
    assert document["name"] == name
    assert "snapshot" in document["expected"]


def test_modification_times_survive_unpacking(golden: GoldenTable) -> None:
    properties = golden("cow_all_types") / ".hoodie" / "hoodie.properties"
    written = datetime.fromtimestamp(properties.stat().st_mtime, UTC)
    newest_instant = max(
        path.name.split("_")[0] for path in (properties.parent / "timeline").glob("*.commit")
    )
    instant = datetime.strptime(newest_instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    assert abs((written - instant).total_seconds()) < 600


def test_a_copy_is_private(golden: GoldenTable, golden_copy: GoldenTable) -> None:
    copied = golden_copy("cow_timestamp_ntz")
    (copied / "added").write_text("by this test")
    assert not (golden("cow_timestamp_ntz") / "added").exists()
    assert not (golden_copy("cow_timestamp_ntz") / "added").exists()


def test_shared_tables_are_among_those_counted() -> None:
    assert set(SHARED_TABLES) <= set(SHARED_ROW_COUNTS)
