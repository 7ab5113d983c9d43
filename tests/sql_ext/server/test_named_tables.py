"""`Table.named` in a session of Spark Connect: the server's catalog says where a table is."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.connect.session import SparkSession

from lakewarden import InvalidRequest, Table
from tests.sql_examples.clients import remote_session
from tests.sql_server import Ports

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def remote(server: Ports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with a database that has entries of several kinds."""
    path = str(tmp_path_factory.mktemp("lake") / "orders")
    Table.create(path, pa.schema([("id", pa.string()), ("Provider", pa.string())]), ["id"])
    with remote_session(server.connect) as session:
        for statement in (
            "CREATE DATABASE remote_names",
            f"CREATE TABLE remote_names.ours USING lakewarden LOCATION '{path}'",
            "CREATE TABLE remote_names.other (Location STRING) USING parquet",
            "CREATE TEMPORARY VIEW places AS SELECT '/lake' AS Location, 'hudi' AS Provider",
        ):
            session.sql(statement).collect()
        yield session
        session.sql("DROP DATABASE remote_names CASCADE").collect()


@pytest.mark.parametrize("name", ["remote_names.ours", "spark_catalog.remote_names.`OURS`"])
def test_a_table_is_found_and_has_the_settings_of_the_session(
    remote: SparkSession, name: str
) -> None:
    remote.sql("SET hoodie.parquet.small.file.limit=17").collect()
    table = Table.named(remote, name)  # type: ignore[arg-type]
    table.insert([{"id": "1", "Provider": "ours"}])
    assert "1" in table.read_arrow(columns=["id"])["id"].to_pylist()
    layers = [layer for _, layer in table.settings().layers]
    assert any(layer.get("hoodie.parquet.small.file.limit") == "17" for layer in layers)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("remote_names.no", "unknown_table"),
        ("remote_names.other", "not_a_table"),
        ("places", "unknown_table"),
        ("a b", "bad_table_name"),
    ],
)
def test_what_is_no_table_of_hudi_is_refused(remote: SparkSession, name: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Table.named(remote, name)  # type: ignore[arg-type]
    assert refused.value.code == code
