"""Tables on S3 without Hadoop's jars for it; credentials are said once, in whatever way.

This session has no file system for `s3a`, so that Python workers read all files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from pyspark.sql import Row, SparkSession

from lakewarden import Table
from tests.engine.storage.conftest import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from tests.sampling import sample
from tests.sql_ext.conftest import Run

__all__ = ["s3_server"]

OF_HADOOP = {"access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "connection.ssl.enabled": "false"}


@dataclass(frozen=True)
class Way:
    """What a statement says of the storage, and what Python is given; None takes it by its name."""

    clause: str = ""
    storage_options: Mapping[str, str] | None = None


def ours(server: S3Server) -> dict[str, str]:
    address = f"http://127.0.0.1:{server.port}"
    return {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": address}


def in_session(server: S3Server) -> dict[str, str]:
    return {f"lakewarden.storage.{name}": value for name, value in ours(server).items()}


def hadoops(server: S3Server) -> dict[str, str]:
    address = f"127.0.0.1:{server.port}"
    return {f"fs.s3a.{key}": value for key, value in {**OF_HADOOP, "endpoint": address}.items()}


def in_environment(server: S3Server) -> dict[str, str]:
    key, secret, address = ours(server).values()
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")
    return dict(zip(names, (key, secret, address), strict=True))


@pytest.fixture(params=sample(("options", "SET", "SET fs.s3a", "environment"), 2))
def way(
    request: pytest.FixtureRequest,
    sql_session: SparkSession,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Way]:
    """How the credentials are said."""
    if request.param == "options":
        said = (f"'{name}' = '{value}'" for name, value in in_session(s3_server).items())
        yield Way(f"OPTIONS ({', '.join(said)})", ours(s3_server))
        return
    if request.param == "environment":
        for name, value in in_environment(s3_server).items():
            monkeypatch.setenv(name, value)
            # As spark.executorEnv has it, for workers.
            monkeypatch.setitem(sql_session.sparkContext.environment, name, value)
        yield Way(storage_options={})
        return
    settings = in_session(s3_server) if request.param == "SET" else hadoops(s3_server)
    for name, value in settings.items():
        sql_session.conf.set(name, value)
    yield Way()
    for name in settings:
        sql_session.conf.unset(name)


def test_create_write_read_and_call_with_credentials_said_once(
    run: Run, sql_session: SparkSession, s3_server: S3Server, way: Way
) -> None:
    address = s3_server.fresh_bucket().uri
    run(
        f"CREATE TABLE far (id STRING, qty INT) USING lakewarden {way.clause} "
        f"TBLPROPERTIES (primaryKey = 'id', type = 'mor') LOCATION '{address}'"
    )
    try:
        run("INSERT INTO far VALUES ('a', 1), ('b', 2)")
        assert run("SELECT sum(qty) FROM far") == [Row(3)]
        run("UPDATE far SET qty = 5 WHERE id = 'a'")
        [done] = run("CALL run_compaction(op => 'scheduleAndExecute', table => 'far')")
        assert done.state == "COMPLETED"
        table = Table.named(sql_session, "far")
        if way.storage_options is not None:
            table = Table(address, way.storage_options)
        assert sorted(row.qty for row in table.read(sql_session).collect()) == [2, 5]
        [counted] = run("SELECT count(*) AS files FROM lakewarden_files('far')")
        assert counted.files == 1
    finally:
        run("DROP TABLE far")
