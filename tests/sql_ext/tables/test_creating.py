"""CREATE TABLE and DROP TABLE: what becomes of the catalog, and of the files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakewarden
from tests.sql_ext.conftest import Refused, Run

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def no_table(run: Run) -> Iterator[None]:
    yield
    run("DROP TABLE IF EXISTS made")


def managed(session: SparkSession) -> Path:
    return Path(session.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "made"


def test_an_existing_table_is_registered(run: Run, orders: Path) -> None:
    run(f"CREATE TABLE made USING lakewarden LOCATION '{orders}'")
    assert run("SELECT id, city FROM made ORDER BY id") == [("1", "Oslo"), ("2", "Rome")]
    described = [row.col_name for row in run("DESCRIBE made")]
    assert described[:2] == ["id", "city"]
    run("DROP TABLE made")
    assert lakewarden.Table(str(orders)).read_arrow().num_rows == 2


def test_a_table_is_created_as_its_properties_say(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "made"
    run(
        "CREATE TABLE made (id INT, at TIMESTAMP, day DATE, price DECIMAL(10, 2)) USING lakewarden"
        f" PARTITIONED BY (day) LOCATION '{path}' TBLPROPERTIES (primaryKey = 'id',"
        " preCombineField = 'at', type = 'mor', 'hoodie.index.type' = 'GLOBAL_SIMPLE')"
    )
    config = lakewarden.Table(str(path)).config
    assert config.key_fields == ("id",)
    assert config.merge.ordering_fields == ("at",)
    assert config.table_type.name == "MERGE_ON_READ"
    assert [field.name for field in config.partitions.fields] == ["day"]
    run("INSERT INTO made VALUES (1, TIMESTAMP '2026-11-18 10:00:00', 1.5, DATE '2026-11-18')")
    assert run("SELECT id, price FROM made WHERE day = DATE '2026-11-18'")[0].id == 1
    assert run("SELECT id FROM made WHERE day < DATE '2026-11-18'") == []


def test_what_show_create_table_says_makes_the_same_table(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run(
        f"CREATE TABLE made (id INT, at BIGINT, p STRING) USING lakewarden PARTITIONED BY (p)"
        f" LOCATION '{first}' TBLPROPERTIES (primaryKey = 'id', preCombineField = 'at',"
        " type = 'mor', 'hoodie.table.cdc.enabled' = 'true', 'hoodie.index.type' = 'BUCKET',"
        " 'hoodie.table.cdc.supplemental.logging.mode' = 'op_key_only',"
        " 'hoodie.bucket.index.num.buckets' = '3', 'hoodie.compact.inline' = 'true',"
        " 'hoodie.datasource.write.hive_style_partitioning' = 'false')"
    )
    statement = str(run("SHOW CREATE TABLE made")[0][0])
    run("DROP TABLE made")
    run(statement.replace(str(first), str(second)))
    assert said_of(second) == said_of(first)


def said_of(path: Path) -> dict[str, str]:
    """The properties of a table that do not tell when it was made, or where."""
    properties = lakewarden.Table(str(path)).config.properties
    apart = ("hoodie.table.name", "hoodie.table.checksum", "hoodie.table.create.schema")
    return {name: text for name, text in properties.items() if name not in apart}


def test_a_table_without_a_location_goes_with_its_files(
    run: Run, refused: Refused, sql_session: SparkSession
) -> None:
    run("CREATE TABLE made (id INT) USING lakewarden TBLPROPERTIES (primaryKey = 'id')")
    run("INSERT INTO made VALUES (1)")
    assert (managed(sql_session) / ".hoodie").is_dir()
    run("CREATE TABLE IF NOT EXISTS made (id INT) USING lakewarden")
    assert "TABLE_EXISTS" in str(refused("CREATE TABLE made (id INT) USING lakewarden"))
    assert run("SELECT id FROM made") == [(1,)]
    run("DROP TABLE made")
    assert not managed(sql_session).exists()


def test_a_table_is_created_from_a_query(
    run: Run, refused: Refused, sql_session: SparkSession
) -> None:
    made = "CREATE TABLE made USING lakewarden TBLPROPERTIES (primaryKey = 'id') AS"
    failing = (
        "SELECT IF(id < 2, id, CAST(raise_error('row 2 fails') AS BIGINT)) AS id FROM range(3)"
    )
    assert "row 2 fails" in str(refused(f"{made} {failing}"))
    assert not managed(sql_session).exists()
    assert run("SHOW TABLES LIKE 'made'") == []
    run(f"{made} SELECT id, id * 2 AS double FROM range(3)")
    assert run("SELECT id, double FROM made ORDER BY id") == [(0, 0), (1, 2), (2, 4)]


BAD = [
    ("CREATE TABLE made USING lakewarden", "NO_COLUMNS"),
    ("CREATE TABLE made USING lakewarden LOCATION '{path}/none'", "NO_TABLE"),
    (
        "CREATE TABLE made (id INT) USING lakewarden TBLPROPERTIES (primaryKey = 'key')",
        "UNKNOWN_COLUMN",
    ),
    (
        "CREATE TABLE made (id INT) USING lakewarden"
        " TBLPROPERTIES (primaryKey = 'id', type = 'row')",
        "BAD_TYPE",
    ),
    (
        "CREATE TABLE made (id INT) USING lakewarden"
        " TBLPROPERTIES (primaryKey = 'id', 'hoodie.no.such.thing' = '1')",
        "UNKNOWN_",
    ),
    (
        "CREATE TABLE made (id INT, x INT DEFAULT 3) USING lakewarden"
        " TBLPROPERTIES (primaryKey = 'id')",
        "DEFAULT",
    ),
    ("CREATE OR REPLACE TABLE made (id INT) USING lakewarden", "UNSUPPORTED_REPLACE_TABLE"),
    ("CREATE TABLE made (other INT) USING lakewarden LOCATION '{orders}'", "TABLE_DIFFERS"),
    (
        "CREATE TABLE made USING lakewarden LOCATION '{orders}'"
        " TBLPROPERTIES (primaryKey = 'id') AS SELECT 'x' AS id",
        "TABLE_EXISTS",
    ),
]


@pytest.mark.parametrize(("statement", "condition"), BAD)
def test_a_wrong_creation_leaves_nothing_behind(
    run: Run,
    refused: Refused,
    sql_session: SparkSession,
    orders: Path,
    tmp_path: Path,
    statement: str,
    condition: str,
) -> None:
    error = refused(statement.format(path=tmp_path, orders=orders))
    assert condition in str(error)
    assert run("SHOW TABLES LIKE 'made'") == []
    assert not managed(sql_session).exists()
    assert lakewarden.Table(str(orders)).schema.field("city").type == pa.string()
