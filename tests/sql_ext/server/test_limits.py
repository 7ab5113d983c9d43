"""At a server with limits no client gets at files but through what its owner allows."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.functions import udf, udtf
from pyspark.sql.connect.session import SparkSession as RemoteSession
from pyspark.sql.types import IntegerType, StructType

from tests.procedures.calls import contents_of
from tests.sql_examples.clients import Client, Refused, SparkClient, ThriftClient, remote_session
from tests.sql_ext.server.served_tables import orders
from tests.sql_server import Ports, running_server

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(600)]

REFUSED = "LAKEWARDEN_(READ_ONLY|STATEMENT_NOT_ALLOWED|FOLDER_OF_TABLE|PATH_NOT_ALLOWED)"


COLUMNS = StructType().add("a", IntegerType())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded") / "lake"
    orders(folder)
    return folder


@pytest.fixture(scope="module")
def ports(lake: Path) -> Iterator[Ports]:
    """A server that lets nobody out of the lake, nor write there."""
    with running_server("--allowed-root", str(lake), "--read-only") as ports:
        yield ports


@pytest.fixture
def connect(ports: Ports) -> Iterator[RemoteSession]:
    with remote_session(ports.connect) as session:
        yield session


@pytest.fixture(params=["jdbc", "connect"])
def client(request: pytest.FixtureRequest, ports: Ports) -> Iterator[Client]:
    if request.param == "jdbc":
        with ThriftClient(ports.thrift) as client:
            yield client
    else:
        with remote_session(ports.connect) as session:
            yield SparkClient(session)


def test_no_statement_touches_a_table_by_its_folder(client: Client, lake: Path) -> None:
    before, table = contents_of(lake), lake / "orders"
    for statement in (
        f"CREATE DATABASE e LOCATION '{table}'",
        f"INSERT OVERWRITE DIRECTORY '{table}' USING parquet SELECT 1",
        f"INSERT OVERWRITE DIRECTORY '{lake}' USING csv SELECT 1",
        f"CREATE TABLE p (id STRING) USING parquet LOCATION '{table}'",
        f"CREATE TABLE p USING parquet LOCATION '{table}' AS SELECT 1 AS id",
        f"ADD JAR '{table}/x.jar'",
        f"SELECT * FROM csv.`{lake.parent}`",
        "SELECT TRANSFORM (1) USING 'cat' AS (x)",
    ):
        with pytest.raises(Refused, match=REFUSED):
            client.ask(statement)
        assert contents_of(lake) == before, statement
    # What could not be made is not there to be dropped, or written to, either.
    for statement in ("DROP DATABASE e CASCADE", "INSERT OVERWRITE p VALUES ('1')"):
        with pytest.raises(Refused, match=f"NOT_FOUND|{REFUSED}"):
            client.ask(statement)
    assert contents_of(lake) == before
    assert client.ask(f"SELECT count(*) FROM lakewarden_files('{table}')").rows
    assert client.ask("SELECT 1 AS one").rows == (("1",),)


def test_no_frame_of_connect_does(connect: RemoteSession, lake: Path) -> None:
    before, table = contents_of(lake), str(lake / "orders")
    rows = connect.range(3)
    for attempt in (
        lambda: rows.write.mode("overwrite").parquet(table),
        lambda: rows.write.mode("append").csv(f"{table}/p"),
        lambda: rows.write.mode("overwrite").option("path", table).saveAsTable("p"),
        lambda: rows.write.format("jdbc").mode("append").save(),
        lambda: rows.writeTo("p").using("parquet").option("path", table).create(),
        lambda: connect.read.csv(str(lake.parent)).collect(),
        lambda: connect.read.jdbc(f"jdbc:derby:{lake}/d;create=true", "t", predicates=["1"]).schema,
        lambda: connect.read.format("jdbc").option("url", f"jdbc:derby:{lake}/d").load().schema,
        lambda: connect.catalog.createTable("p", table, "parquet"),
    ):
        refuses(attempt)
        assert contents_of(lake) == before


def test_no_code_of_a_connect_client_is_run(
    connect: RemoteSession, lake: Path, tmp_path: Path
) -> None:
    before, more = contents_of(lake), tmp_path / "more.py"
    more.write_text("1")

    def harm(_: object) -> int:
        raise AssertionError

    class Function:
        def eval(self) -> Iterator[tuple[int]]:
            raise AssertionError

    rows = connect.range(1)
    for attempt in (
        lambda: rows.select(udf(harm, IntegerType(), useArrow=False)("id")).collect(),
        lambda: rows.mapInArrow(harm, COLUMNS).collect(),
        lambda: rows.groupBy("id").applyInPandas(harm, COLUMNS).collect(),
        lambda: connect.udf.register("harm", harm, IntegerType()),
        lambda: connect.udtf.register("lakewarden_plans", udtf(Function, returnType=COLUMNS)),
        lambda: connect.readStream.format("rate").load().writeStream.format("noop").start(),
        lambda: connect.addArtifacts(str(more), pyfile=True),
    ):
        refuses(attempt)
    assert contents_of(lake) == before
    assert connect.createDataFrame([(1,)], "a int").collect() == [(1,)]
    assert connect.sql("SELECT 1 AS one").collect() == [(1,)]


def refuses(attempt: Callable[[], object]) -> None:
    """Whatever is called ends with an error that says so."""
    with pytest.raises(Exception, match=REFUSED) as raised:
        attempt()
    assert not isinstance(raised.value, AssertionError)
    assert isinstance(raised.value, PySparkException) or "PERMISSION_DENIED" in str(raised.value)
