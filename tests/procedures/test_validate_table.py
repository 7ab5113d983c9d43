"""`validate_table`: sound tables pass, and each kind of damage is found by the check for it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import restore, rollback
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Withdrawn, encode_entry
from tests.golden_tables import GOLDEN_TABLES, GoldenTable
from tests.procedures.calling import assert_promises, call

LATER = "99991231235959999"
CHECKS = ["timeline", "files", "metadata_table", "record_index", "column_stats", "ledgers", "keys"]


def test_arguments_and_columns_are_as_promised() -> None:
    columns = ["check", "partition", "object", "verdict", "detail"]
    promised = (["table", "checks", "path"], [f"{name} STRING" for name in columns])
    assert_promises({"validate_table": promised})


def failures(path: Path, checks: str = "") -> set[str]:
    rows = call("validate_table", path, checks=checks)
    assert {row["check"] for row in rows} == set(checks.split(",") if checks else CHECKS)
    return {row["check"] for row in rows if row["verdict"] == "failed"}


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_tables_of_java_are_sound(name: str, golden: GoldenTable) -> None:
    assert failures(golden(name)) == set()


SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("v", pa.float64()), ("p", pa.string())]
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A merge-on-read table with logs, a record index and statistics."""
    path = tmp_path_factory.mktemp("validate") / "t"
    indexes = ["column_stats", "record_index"]
    table = Table.create(
        str(path), SCHEMA, key=["id"], partition=["p"], type="mor", indexes=indexes
    )
    table.upsert(rows(1))
    table.upsert(rows(2).slice(0, 2))
    return path


def rows(n: int) -> pa.Table:
    ids = ["a", "b", "c", "d"]
    values = {"id": ids, "n": [n, n, None, n], "v": [n / 2, float("nan"), 0.0, 1.0]}
    return pa.table({**values, "p": ["x", "x", "y", "y"]}, schema=SCHEMA)


@pytest.fixture
def table(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "t"))


def test_a_table_of_ours_is_sound(sound: Path) -> None:
    rows = call("validate_table", sound)
    assert [(row["check"], row["verdict"]) for row in rows] == [(name, "ok") for name in CHECKS]


def base_file(path: Path, partition: str = "p=x") -> Path:
    return next((path / partition).glob("*.parquet"))


def timeline(path: Path, pattern: str) -> Path:
    return min((path / ".hoodie" / "timeline").glob(pattern))


def empty_instant(path: Path) -> None:
    timeline(path, "*_*.deltacommit").write_bytes(b"")


def strange_name(path: Path) -> None:
    timeline(path, "*_*.deltacommit").with_name("backup.zip").write_bytes(b"x")


def early_completion(path: Path) -> None:
    file = timeline(path, "*_*.deltacommit")
    file.rename(file.with_name(f"{file.name.split('_')[0]}_{'1' * 17}.deltacommit"))


def missing_file(path: Path) -> None:
    base_file(path).unlink()


def longer_file(path: Path) -> None:
    with base_file(path).open("ab") as file:
        file.write(b"more")


def broken_footer(path: Path) -> None:
    file = base_file(path)
    file.write_bytes(file.read_bytes()[:-8] + b"12345678")


def stray_file(path: Path) -> None:
    base_file(path).with_name(f"stray-0_0-0-0_{'2' * 17}.parquet").write_bytes(b"x")


def wrong_key(path: Path) -> None:
    """The key `a` becomes `z`, and the file stays as long as it was recorded."""
    change_column(path, "_hoodie_record_key", ["z", "b"])


def wrong_value(path: Path) -> None:
    change_column(path, "n", [7, 8])


def change_column(path: Path, name: str, values: list[object]) -> None:
    file = base_file(path)
    found = pq.ParquetFile(file)
    rows = found.read()
    at = rows.schema.get_field_index(name)
    rows = rows.set_column(
        at, rows.schema.field(at), [pa.array(values, rows.schema.field(at).type)]
    )
    pq.write_table(rows.replace_schema_metadata(found.schema_arrow.metadata), file)


def torn_ledger(path: Path) -> None:
    """An entry in the middle of a ledger is none."""
    folder = min((path / ".hoodie" / ".lakewarden" / "ledger").iterdir())
    (folder / "000001.json").write_bytes(b"nonsense}")


def lost_instant(path: Path) -> None:
    """The timeline loses what the ledger says was committed."""
    newest = max((path / ".hoodie" / "timeline").glob("*_*.deltacommit"))
    for file in newest.parent.glob(f"{newest.name.split('_')[0]}*"):
        file.unlink()


def rolled_back_by_java(path: Path) -> None:
    """The instant goes, without a word in its ledger; here its files stay."""
    instant = newest_instant(path)
    done = rollback.RollbackMetadata(start_rollback_time=LATER, commits_rollback=(instant,))
    lost_instant(path)
    (path / ".hoodie" / "timeline" / f"{LATER}_{LATER}.rollback").write_bytes(rollback.encode(done))


def restored_by_java(path: Path) -> None:
    instant = newest_instant(path)
    done = restore.RestoreMetadata(start_restore_time=LATER, instants_to_rollback=(instant,))
    lost_instant(path)
    (path / ".hoodie" / "timeline" / f"{LATER}_{LATER}.restore").write_bytes(restore.encode(done))


def withdrawn_alone(path: Path) -> None:
    """A rollback dies before it is published: the write is there as it was."""
    instant = newest_instant(path)
    folder = path / ".hoodie" / ".lakewarden" / "ledger" / instant
    entry = Withdrawn(
        instant=instant,
        action=Action.DELTA_COMMIT,
        owner="me",
        by="somebody",
        reason="wrong",
        at_ms=8,
    )
    number = len(list(folder.iterdir())) + 1
    (folder / f"{number:06d}.json").write_bytes(encode_entry(entry))


def newest_instant(path: Path) -> str:
    return max((path / ".hoodie" / "timeline").glob("*_*.deltacommit")).name.split("_")[0]


def doubled_key(path: Path) -> None:
    Table(str(path)).insert(rows(3).slice(0, 1), small_file_limit=0)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (empty_instant, {"timeline"}),
        (strange_name, {"timeline"}),
        (early_completion, {"timeline"}),
        (missing_file, {"files", "metadata_table", "record_index", "column_stats", "keys"}),
        (longer_file, {"files", "metadata_table", "record_index", "column_stats", "keys"}),
        (broken_footer, {"files", "record_index", "column_stats", "keys"}),
        (stray_file, {"files", "metadata_table"}),
        (wrong_key, {"files", "metadata_table", "record_index", "column_stats"}),
        (wrong_value, {"files", "metadata_table", "column_stats"}),
        (torn_ledger, {"ledgers"}),
        (lost_instant, {"files", "ledgers", "metadata_table"}),
        # The ledger tells of a commit, and the timeline that Java has rolled it back.
        (rolled_back_by_java, {"files", "metadata_table"}),
        (restored_by_java, {"files", "metadata_table"}),
        (withdrawn_alone, set()),
        (doubled_key, {"record_index", "keys"}),
    ],
)
def test_damage_is_found_by_the_check_for_it(
    damage: Callable[[Path], None], found: set[str], table: Path
) -> None:
    damage(table)
    assert failures(table) == found


def test_checks_are_carried_out_by_name(table: Path) -> None:
    base_file(table).unlink()
    assert failures(table, "timeline,ledgers") == set()
    rows = call("validate_table", table, checks="files")
    assert [(row["partition"], row["verdict"]) for row in rows] == [("p=x", "failed")]
    with pytest.raises(InvalidRequest, match="no check 'file'"):
        call("validate_table", table, checks="file")
