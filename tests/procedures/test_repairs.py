"""Repairs of what stands beside the data: by Hudi's words, tried dry, and refused with reasons."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from tests.procedures.calls import call, call_one, contents_of

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string())])
PROPERTIES = ".hoodie/hoodie.properties"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with two partitions."""
    made = str(tmp_path / "table")
    Table.create(made, SCHEMA, ["id"], ["p"]).upsert(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    return made


def test_partitions_are_marked_again_only_where_they_are_not(path: str) -> None:
    lost = Path(path) / "p=b" / PARTITION_METADATA
    lost.unlink()
    found = [("p=a", "Yes", "None"), ("p=b", "No", "None")]
    assert [tuple(row.values()) for row in call("repair_add_partition_meta", path=path)] == found
    assert not lost.exists()
    rows = call("repair_add_partition_meta", path=path, dry_run=False)
    assert rows[1]["action"] == "Repaired"
    assert StorageListing(Table(path).state().storage).partitions() == ("p=a", "p=b")
    assert {row["action"] for row in call("repair_add_partition_meta", path=path)} == {"None"}


def test_partitions_are_marked_in_the_base_format(path: str) -> None:
    before = contents_of(Path(path))
    dry = call("repair_migrate_partition_meta", path=path)
    assert [row["action"] for row in dry] == ["MIGRATE", "MIGRATE"]
    assert contents_of(Path(path)) == before
    done = call("repair_migrate_partition_meta", path=path, dry_run=False)
    assert tuple(done[0].values()) == ("p=a", "true", "false", "MIGRATED")
    names = {one.name for one in Path(path).glob(f"p=*/{PARTITION_METADATA}*")}
    assert names == {f"{PARTITION_METADATA}.parquet"}
    footer = pa.parquet.read_metadata(Path(path) / "p=a" / f"{PARTITION_METADATA}.parquet")
    assert footer.metadata[b"partitionDepth"] == b"1"
    assert {row["action"] for row in call("repair_migrate_partition_meta", path=path)} == {"NONE"}
    table = Table(path)
    assert table.properties["hoodie.partition.metafile.use.base.format"] == "true"
    table.upsert(pa.table({"id": [3], "p": ["c"]}, SCHEMA))
    assert StorageListing(table.state().storage).partitions() == ("p=a", "p=b", "p=c")


def test_properties_are_overwritten_where_the_rows_stay_what_they_are(
    path: str, tmp_path: Path
) -> None:
    said = (Path(path) / PROPERTIES).read_text()
    new = tmp_path / "new.properties"
    new.write_text(f"{said}\nhoodie.some.note=kept\n")
    before = contents_of(Path(path))
    given = {"path": path, "new_props_file_path": str(new)}
    rows = {
        row["property"]: row for row in call("repair_overwrite_hoodie_props", **given, dry_run=True)
    }
    assert rows["hoodie.some.note"]["old_value"] == "null"
    assert contents_of(Path(path)) == before
    call("repair_overwrite_hoodie_props", **given)
    assert Table(path).properties["hoodie.some.note"] == "kept"
    for old, other in (
        ("recordkey.fields=id", "recordkey.fields=p"),
        ("hive_style_partitioning=true", "hive_style_partitioning=false"),
        ("hoodie.table.version=9", "hoodie.table.version=8"),
    ):
        assert old in said
        new.write_text(said.replace(old, other))
        with pytest.raises(InvalidRequest, match="describe another table"):
            call("repair_overwrite_hoodie_props", **given)
    new.write_text("nothing=of a table\n")
    with pytest.raises(LakewardenError):
        call("repair_overwrite_hoodie_props", **given)


def test_damaged_cleans_go_and_whole_ones_stay(path: str) -> None:
    timeline = Path(path) / ".hoodie" / "timeline"
    assert call_one("repair_corrupted_clean_files", path=path) == {"result": True, "removed": ""}
    damaged = "20240101000000000"
    (timeline / f"{damaged}.clean.requested").write_bytes(b"")
    (timeline / f"{damaged}.clean.inflight").write_bytes(b"")
    dry = call_one("repair_corrupted_clean_files", path=path, dry_run=True)
    assert dry == {"result": False, "removed": damaged}
    heartbeat = Path(path) / ".hoodie" / ".heartbeat" / damaged
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")
    stays = call_one("repair_corrupted_clean_files", path=path)
    assert stays == {"result": False, "removed": ""}
    heartbeat.unlink()
    gone = call_one("repair_corrupted_clean_files", path=path)
    assert gone == {"result": True, "removed": damaged}
    assert not list(timeline.glob(f"{damaged}*"))
    assert Table(path).read_arrow().num_rows == 2
