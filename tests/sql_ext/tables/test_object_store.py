"""Tables on S3 without Hadoop's jars for it; credentials are said once, in whatever way.

This session has no file system for `s3a`, so that Python workers read all files.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import Row, SparkSession

from lakewarden import Table
from tests.engine.storage.conftest import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from tests.sql_ext.conftest import Run

__all__ = ["s3_server"]

OF_HADOOP = {"access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "connection.ssl.enabled": "false"}


def ours(server: S3Server) -> dict[str, str]:
    address = f"http://127.0.0.1:{server.port}"
    return {
        f"lakewarden.storage.{name}": value
        for name, value in (("key", ACCESS_KEY), ("secret", SECRET_KEY), ("endpoint_url", address))
    }


def hadoops(server: S3Server) -> dict[str, str]:
    address = f"127.0.0.1:{server.port}"
    return {f"fs.s3a.{key}": value for key, value in {**OF_HADOOP, "endpoint": address}.items()}


@pytest.fixture(params=["options", "SET", "SET fs.s3a"])
def options(
    request: pytest.FixtureRequest, sql_session: SparkSession, s3_server: S3Server
) -> Iterator[str]:
    """The OPTIONS of a statement, where the way is not to set them in the session."""
    if request.param == "options":
        said = (f"'{name}' = '{value}'" for name, value in ours(s3_server).items())
        yield f"OPTIONS ({', '.join(said)})"
        return
    settings = ours(s3_server) if request.param == "SET" else hadoops(s3_server)
    for name, value in settings.items():
        sql_session.conf.set(name, value)
    yield ""
    for name in settings:
        sql_session.conf.unset(name)


def test_create_write_read_and_call_with_credentials_said_once(
    run: Run, sql_session: SparkSession, s3_server: S3Server, options: str
) -> None:
    address = s3_server.fresh_bucket().uri
    run(
        f"CREATE TABLE far (id STRING, qty INT) USING lakewarden {options} "
        f"TBLPROPERTIES (primaryKey = 'id', type = 'mor') LOCATION '{address}'"
    )
    try:
        run("INSERT INTO far VALUES ('a', 1), ('b', 2)")
        assert run("SELECT sum(qty) FROM far") == [Row(3)]
        run("UPDATE far SET qty = 5 WHERE id = 'a'")
        [done] = run("CALL run_compaction(op => 'scheduleAndExecute', table => 'far')")
        assert done.state == "COMPLETED"
        frame = Table.named(sql_session, "far").read(sql_session)
        assert sorted(row.qty for row in frame.collect()) == [2, 5]
        [counted] = run("SELECT count(*) AS files FROM lakewarden_files('far')")
        assert counted.files == 1
    finally:
        run("DROP TABLE far")
