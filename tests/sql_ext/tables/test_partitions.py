"""Statements name partitions by the values of columns, in whatever spelling, and nothing else."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.tables.partitions import Values, drop, shown

COLUMNS = pa.schema([("id", pa.string()), ("year", pa.int32()), ("day", pa.date32())])
ROWS = [
    {"id": "1", "year": 7, "day": None},
    {"id": "2", "year": 7, "day": 19000},
    {"id": "3", "year": 8, "day": 19000},
]
NONE, DAY = "__HIVE_DEFAULT_PARTITION__", "2022-01-08"


@pytest.fixture(params=[True, False], ids=["with names", "without names"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    named = {"hoodie.datasource.write.hive_style_partitioning": request.param}
    path = str(tmp_path / "t")
    table = Table.create(path, COLUMNS, ["id"], ["year", "day"], properties=named)
    table.insert(pa.Table.from_pylist(ROWS, COLUMNS))
    return table


def keys(table: Table) -> list[str]:
    return sorted(table.read_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, [f"7/{DAY}", f"7/{NONE}", f"8/{DAY}"]),
        ({"year": "7"}, [f"7/{DAY}", f"7/{NONE}"]),
        ({"YEAR": "007", "day": DAY}, [f"7/{DAY}"]),
        ({"day": None}, [f"7/{NONE}"]),
        ({"day": NONE}, []),
        ({"year": "seven"}, []),
    ],
)
def test_partitions_are_shown_by_their_paths(
    table: Table, values: Values, found: list[str]
) -> None:
    paths = shown(table, values)
    assert [path.replace("year=", "").replace("day=", "") for path in paths] == found


def test_some_of_the_values_drop_all_that_have_them(table: Table) -> None:
    drop(table, [{"year": "7", "day": None}, {"year": "8"}], if_exists=False)
    assert keys(table) == ["2"]
    assert len(shown(table, {})) == 1


def test_nothing_is_dropped_when_one_of_them_is_not_there(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="no partition with year = '9'") as refused:
        drop(table, [{"year": "8"}, {"year": "9"}], if_exists=False)
    assert refused.value.code == "unknown_partition"
    assert keys(table) == ["1", "2", "3"]
    drop(table, [{"year": "8"}, {"year": "9"}], if_exists=True)
    assert keys(table) == ["1", "2"]


def test_only_partition_columns_name_partitions(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="Its partition columns are year, day"):
        drop(table, [{"id": "1"}], if_exists=True)


def test_values_that_paths_do_not_tell_name_nothing(tmp_path: Path) -> None:
    of_time = {
        "hoodie.table.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    columns = pa.schema([("id", pa.string()), ("at", pa.int64())])
    table = Table.create(str(tmp_path / "t"), columns, ["id"], ["at"], properties=of_time)
    table.insert([{"id": "1", "at": 0}])
    with pytest.raises(
        InvalidRequest, match="Partition paths hold times that are computed from at"
    ):
        drop(table, [{"at": "0"}], if_exists=True)
    assert shown(table, {}) == ["at=1970"]
    assert keys(table) == ["1"]


def test_a_table_without_partitions_shows_none(tmp_path: Path) -> None:
    assert shown(Table.create(str(tmp_path / "t"), COLUMNS, ["id"]), {}) == []
