"""Each kind of client can call procedures, make indexes, and query state as tables."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lakewarden.table import Table
from tests.sql_examples.clients import Client, Refused, SparkClient, ThriftClient, remote_session
from tests.sql_ext.server.beeline import beeline
from tests.sql_server import Ports

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(600)]

SCHEMA = pa.schema([("id", pa.string()), ("qty", pa.int32())])


class Story:
    """A table, statements of each kind about it, and what they give."""

    def __init__(self, path: Path) -> None:
        self.name = f"{path.parent.name}_orders".replace("-", "_")
        self.instant = (
            Table.create(str(path), SCHEMA, key=["id"])
            .upsert(pa.table([["1"], [2]], schema=SCHEMA))
            .instant
        )
        self.registration = f"CREATE TABLE {self.name} USING lakewarden LOCATION '{path}'"
        self.call = f"CALL show_commits(table => '{self.name}')"
        self.index = f"CREATE INDEX by_key ON {self.name} USING record_index (id)"
        self.query = f"SELECT instant_time, action FROM lakewarden_timeline('{path}')"
        self.mistake = f"CALL show_comits(table => '{self.name}')"
        self.hint = "[LAKEWARDEN_UNKNOWN_PROCEDURE] Lakewarden has no procedure 'show_comits'."

    def tell(self, client: Client) -> None:
        client.ask(self.registration)
        assert client.ask(self.call).rows[0][0] == self.instant
        assert "record_index" in str(client.ask(self.index))
        assert (self.instant, "commit") in client.ask(self.query).rows
        with pytest.raises(Refused) as refused:
            client.ask(self.mistake)
        text = str(refused.value)
        assert text.startswith(self.hint)
        assert "SQLSTATE: 42883" in text


def test_a_driver_for_python(server: Ports, tmp_path: Path) -> None:
    with ThriftClient(server.thrift) as client:
        Story(tmp_path / "orders").tell(client)


def test_a_session_of_spark_connect(server: Ports, tmp_path: Path) -> None:
    with remote_session(server.connect) as session:
        Story(tmp_path / "orders").tell(SparkClient(session))


def test_errors_come_to_spark_connect_without_a_stack(server: Ports) -> None:
    with remote_session(server.connect) as session, pytest.raises(PySparkException) as refused:
        session.sql("CALL show_comits(table => 'orders')").collect()
    text = str(refused.value)
    assert text.startswith("[LAKEWARDEN_UNKNOWN_PROCEDURE]")
    assert "stacktrace" not in text
    assert "\tat " not in text


def test_syntax_errors_of_spark_are_shown_without_its_classes(server: Ports) -> None:
    with ThriftClient(server.thrift) as client, pytest.raises(Refused) as refused:
        client.ask("SELECT 1 FRM nowhere WHERE")
    text = str(refused.value)
    assert text.strip().startswith("[PARSE_SYNTAX_ERROR]")
    assert "org.apache" not in text
    assert "\tat " not in text


def test_beeline(server: Ports, tmp_path: Path) -> None:
    story = Story(tmp_path / "orders")
    reported = beeline(server.thrift, story.registration, story.call, story.index, story.query)
    assert reported.code == 0, reported.errors
    text = "\n".join(reported.lines)
    assert f"{story.instant}\t" in text
    assert "record_index" in text
    assert f"{story.instant}\tcommit" in reported.lines
    # One who reads is not shown where in the server it was thrown.
    reported = beeline(server.thrift, story.mistake)
    assert reported.code != 0
    assert f"Error: {story.hint}" in reported.errors
    assert "(state=42883" in reported.errors
    assert "\tat " not in reported.errors
