"""Damaged tables: a named error or the right rows, never a foreign exception or other rows."""

import random
import shutil
from pathlib import Path

import pytest

from lakewarden import CorruptTable, Defect, InvalidRequest, LakewardenError, Table
from tests.canonical import canonical_rows
from tests.golden_tables import GoldenTable

DAMAGES_A_TABLE = 25


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def test_missing_table_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"hoodie\.properties") as refused:
        Table(str(tmp_path))
    assert refused.value.code == "no_table"


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(LakewardenError):
        Table(str(tmp_path / "nothing" / "here"))


def test_unreadable_properties(golden_copy: GoldenTable) -> None:
    table = golden_copy("cow_all_types")
    (table / ".hoodie" / "hoodie.properties").write_bytes(b"\\u00zz=\xff\x00")
    with pytest.raises(CorruptTable, match=r"hoodie\.properties"):
        Table(str(table))


def test_missing_base_file_is_named(golden_copy: GoldenTable) -> None:
    table = golden_copy("cow_all_types")
    for base in table.glob("*/*.parquet"):
        base.unlink()
    with pytest.raises(CorruptTable, match=r"\.parquet") as refused:
        Table(str(table)).read_arrow()
    assert refused.value.code == "missing_file"


def test_missing_log_file_is_named(golden_copy: GoldenTable) -> None:
    table = golden_copy("mor_compaction_completed")
    for log in table.glob("*/.*.log.*"):
        log.unlink()
    with pytest.raises(CorruptTable, match=r"\.log\.") as refused:
        Table(str(table)).read_arrow()
    assert refused.value.code == "missing_file"


def test_torn_log_file_is_an_error_and_never_fewer_rows(golden_copy: GoldenTable) -> None:
    table = golden_copy("mor_deletes")
    for log in table.glob("*/.*.log.*"):
        log.write_bytes(log.read_bytes()[:-20])
    with pytest.raises(CorruptTable, match=r"\.log\."):
        Table(str(table)).read_arrow(use_metadata=False)


def test_metadata_partition_without_files_is_named(golden_copy: GoldenTable) -> None:
    table = golden_copy("cow_all_types")
    shutil.rmtree(table / ".hoodie" / "metadata" / "files")
    with pytest.raises(CorruptTable) as refused:
        Table(str(table)).read_arrow()
    assert refused.value.code == "missing_metadata_partition"
    assert Table(str(table)).read_arrow(use_metadata=False).num_rows == 11


def test_empty_plan_counts_as_never_published(golden_copy: GoldenTable) -> None:
    table = golden_copy("mor_compaction_requested")
    rows = canonical_rows(Table(str(table)).read_arrow())
    first(table / ".hoodie" / "timeline", "*.compaction.requested").write_bytes(b"")
    assert canonical_rows(Table(str(table)).read_arrow()) == rows


@pytest.mark.parametrize(
    "name", ["cow_clean_keep_latest_commits", "mor_compaction_completed", "mor_record_index_global"]
)
def test_damaged_bytes_give_a_named_error_or_the_table_is_read(
    name: str, golden_copy: GoldenTable
) -> None:
    chance = random.Random(name)
    table = golden_copy(name)
    files = sorted(path for path in table.rglob("*") if path.is_file() and path.stat().st_size)
    for _ in range(DAMAGES_A_TABLE):
        victim = chance.choice(files)
        sound = victim.read_bytes()
        victim.write_bytes(damaged(sound, chance))
        assert not isinstance(outcome_of_reading(table), Defect), victim
        victim.write_bytes(sound)


def outcome_of_reading(table: Path) -> LakewardenError | None:
    """The named error that reading ends with; any other exception fails the test by itself."""
    try:
        Table(str(table)).read_arrow()
        Table(str(table)).lookup(["k001"])
    except LakewardenError as error:
        return error
    return None


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content cut short, or with some bytes changed."""
    if chance.random() < 0.3:
        return content[: chance.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)
