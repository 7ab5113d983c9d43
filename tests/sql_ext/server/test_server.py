"""A server is reached by JDBC and by Spark Connect, and lets those in who may come in."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession as RemoteSession

from tests.procedures.calls import contents_of
from tests.sql_examples.clients import Refused, SparkClient, ThriftClient, session_at
from tests.sql_ext.server.beeline import beeline
from tests.sql_ext.server.served_tables import orders
from tests.sql_server import SOON, Ports, running_server

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(600)]

PASSWORD, TOKEN = "open-sesame", "a-token"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Ports]:
    """A server that wants to know who comes, and lets nobody out of one folder."""
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "token").write_text(TOKEN)
    secrets = ["--password-file", f"{folder}/password", "--token-file", f"{folder}/token"]
    limits = ["--allowed-root", str(folder / "allowed")]
    with running_server("--user", "ada", *secrets, *limits) as ports:
        yield ports


def connected(ports: Ports, token: str = TOKEN) -> RemoteSession:
    return session_at(f"sc://localhost:{ports.connect}/;token={token}")


def test_whoever_has_the_password_may_come_in(guarded: Ports) -> None:
    # So often that threads of the server are met which have served others.
    for _ in range(12):
        with ThriftClient(guarded.thrift, "ada", PASSWORD) as client:
            assert client.ask("SELECT 1 AS one").rows == (("1",),)


@pytest.mark.parametrize(
    ("user", "password"), [("ada", "wrong"), ("ada", ""), ("eve", PASSWORD), ("", PASSWORD)]
)
def test_nobody_else_may(guarded: Ports, user: str, password: str) -> None:
    with pytest.raises(Exception, match=r"Bad status|[Aa]uthenticat|Error validating|TSocket"):
        ThriftClient(guarded.thrift, user, password)


def test_beeline_shows_a_password(guarded: Ports) -> None:
    reported = beeline(guarded.thrift, "CALL help('cancel_plan')", user="ada", password=PASSWORD)
    assert reported.code == 0, reported.errors
    assert any("cancel_plan" in line for line in reported.lines)
    reported = beeline(guarded.thrift, "SELECT 1", user="ada", password="wrong")
    assert reported.code != 0
    assert not reported.lines


def test_connect_wants_the_token(guarded: Ports) -> None:
    stranger = connected(guarded, "wrong")
    # It would go on trying for minutes, also to say goodbye.
    stranger.client.set_retry_policies([])
    with pytest.raises(Exception, match=r"UNAUTHENTICATED|token"):
        stranger.sql("SELECT 1").collect()
    stranger.client.close()
    session = connected(guarded)
    assert session.sql("SELECT 1 AS one").collect()[0].one == 1
    session.stop()


def test_tables_elsewhere_are_out_of_reach_whatever_a_client_sets(
    guarded: Ports, folder: Path
) -> None:
    inside, outside = orders(folder / "allowed"), orders(folder / "elsewhere")
    with ThriftClient(guarded.thrift, "ada", PASSWORD) as client:
        assert not client.ask(f"CALL show_plans(path => '{inside}')").rows
        client.ask("SET lakewarden.allowed.roots=/")
        for path in (outside, f"{folder}/allowed/../elsewhere/orders"):
            for statement in (
                f"CALL show_plans(path => '{path}')",
                f"SELECT * FROM lakewarden_plans('{path}')",
            ):
                with pytest.raises(Refused, match=r"PATH_NOT_ALLOWED|may not use"):
                    client.ask(statement)


def test_tables_inside_are_not_touched_by_their_folders(guarded: Ports, folder: Path) -> None:
    lake = folder / "allowed" / "beside"
    table = orders(lake)
    before = contents_of(lake)
    session = connected(guarded)
    with ThriftClient(guarded.thrift, "ada", PASSWORD) as client:
        for statement in (
            f"CREATE DATABASE e LOCATION '{table}'",
            f"INSERT OVERWRITE DIRECTORY '{table}' USING parquet SELECT 1",
            f"CREATE TABLE p (id STRING) USING parquet LOCATION '{table}'",
            f"CREATE TABLE p USING csv LOCATION '{lake}' AS SELECT 1 AS id",
        ):
            for asked in (client, SparkClient(session)):
                with pytest.raises(Refused, match="FOLDER_OF_TABLE"):
                    asked.ask(statement)
    for write in (session.range(1).write.parquet, session.range(1).write.mode("overwrite").csv):
        with pytest.raises(PySparkException, match="FOLDER_OF_TABLE"):
            write(table)
    assert contents_of(lake) == before
    session.range(3).write.parquet(f"{folder}/allowed/files")
    assert session.read.parquet(f"{folder}/allowed/files").count() == 3
    session.stop()


@pytest.mark.by_turns(2)
def test_a_port_that_is_taken_ends_the_server_with_an_error(guarded: Ports) -> None:
    command = ["lakewarden", "serve", "--no-connect", "--port", str(guarded.thrift), *SOON]
    ended = subprocess.run(
        [Path(os.sys.executable).parent / command[0], *command[1:]],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 1
    assert "port" in ended.stderr
    assert "Traceback" not in ended.stderr
