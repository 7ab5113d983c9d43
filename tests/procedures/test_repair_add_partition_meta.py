"""`repair_add_partition_meta`: partitions are found by a listing again."""

from pathlib import Path

import pyarrow as pa

import lakewarden
from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.listing import StorageListing
from tests.procedures.calls import call


def test_only_what_is_missing_is_made_and_only_when_asked_to(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    schema = pa.schema([("id", pa.int32()), ("p", pa.string())])
    table = lakewarden.Table.create(path, schema, ["id"], ["p"])
    table.upsert(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    lost = Path(path) / "p=b" / PARTITION_METADATA
    lost.unlink()
    found = [("p=a", "Yes", "None"), ("p=b", "No", "None")]
    assert [tuple(row.values()) for row in call("repair_add_partition_meta", path=path)] == found
    assert not lost.exists()
    rows = call("repair_add_partition_meta", path=path, dry_run=False)
    assert rows[1]["action"] == "Repaired"
    assert StorageListing(table.state().storage).partitions() == ("p=a", "p=b")
    assert {row["action"] for row in call("repair_add_partition_meta", path=path)} == {"None"}
