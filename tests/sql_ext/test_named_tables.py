"""`Table.named`: tables of a session's catalog, opened from Python."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden import InvalidRequest, Table
from tests.sql_ext.conftest import Run

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def database(run: Run, orders: Path) -> str:
    """A database with entries of several kinds for one table."""
    run("CREATE DATABASE by_name")
    run(f"CREATE TABLE by_name.ours USING lakewarden LOCATION '{orders}'")
    run("CREATE TABLE by_name.other (a INT) USING parquet")
    return "by_name"


@pytest.mark.parametrize("prefix", ["", "spark_catalog."])
def test_a_table_is_found_by_its_name(
    sql_session: SparkSession, database: str, orders: Path, prefix: str
) -> None:
    table = Table.named(sql_session, f"{prefix}{database}.ours")
    assert sorted(table.read_arrow(columns=["id"])["id"].to_pylist()) == ["1", "2"]
    assert repr(table) == repr(Table(str(orders)))


def test_the_current_database_and_the_settings_are_the_sessions(
    sql_session: SparkSession, database: str
) -> None:
    other = sql_session.newSession()
    other.sql(f"USE {database}")
    other.sql("SET hoodie.parquet.small.file.limit=17")
    settings = Table.named(other, "`OURS`").settings()
    assert ("hoodie.parquet.small.file.limit", "17") in [
        pair for _, layer in settings.layers for pair in layer.items()
    ]
    with pytest.raises(InvalidRequest, match="The catalog has no table"):
        Table.named(sql_session, "ours")


@pytest.mark.parametrize(
    ("name", "code"),
    [("by_name.our", "unknown_table"), ("by_name.other", "not_a_table"), ("a b", "bad_table_name")],
)
def test_what_is_no_table_of_hudi_is_refused(
    sql_session: SparkSession, database: str, name: str, code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Table.named(sql_session, name)
    assert refused.value.code == code
