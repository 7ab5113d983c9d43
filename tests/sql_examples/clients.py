"""Clients: the ways in which people reach a session, each giving answers as the same text."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Protocol

from impala.dbapi import connect
from impala.error import Error
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession

from tests.sql_examples.stories import Grid

# Up to Spark 4.1 a session that is collected ends a pool of threads that all sessions share. Where
# that happens while another one hands that pool a task, the pool waits for itself. So none is.
_kept: list[RemoteSession] = []


class Refused(Exception):
    """A statement that was refused, with what the client is told."""


class Client(Protocol):
    """Something that takes SQL."""

    def ask(self, statement: str) -> Grid:
        """The answer; `Refused` where there is none."""


class SparkClient:
    """A session of Spark, in this process or at a server."""

    def __init__(self, spark: "SparkSession | RemoteSession") -> None:
        self._spark = spark

    def ask(self, statement: str) -> Grid:
        try:
            frame = self._spark.sql(statement)
            rows = frame.collect()
        except PySparkException as error:
            raise Refused(str(error)) from error
        return _grid(frame.columns, rows)


class ThriftClient(AbstractContextManager["ThriftClient"]):
    """A connection as JDBC's drivers have it."""

    def __init__(self, port: int, user: str = "analyst", password: str = "any") -> None:
        self._connection = connect(
            host="127.0.0.1", port=port, auth_mechanism="PLAIN", user=user, password=password
        )
        # This driver has a session for each cursor.
        self._cursor = self._connection.cursor()

    def __exit__(self, *_: object) -> None:
        self._cursor.close()
        self._connection.close()

    def ask(self, statement: str) -> Grid:
        try:
            self._cursor.execute(statement)
            columns = [one[0] for one in self._cursor.description or []]
            if columns == ["Result"]:
                # So Spark's server names the answer of a statement without columns; this driver
                # can't fetch what is not there.
                return Grid((), ())
            return _grid(columns, self._cursor.fetchall())
        except Error as error:
            raise Refused(str(error)) from error


def session_at(url: str) -> RemoteSession:
    """A session at a Spark Connect server."""
    session = RemoteSession.builder.remote(url).create()
    _kept.append(session)
    return session


@contextmanager
def remote_session(port: int) -> Iterator[RemoteSession]:
    """A session of its own at a Spark Connect server on this machine."""
    session = session_at(f"sc://127.0.0.1:{port}")
    try:
        yield session
    finally:
        session.stop()


def _grid(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Grid:
    return Grid(tuple(columns), tuple(tuple(map(_text, row)) for row in rows))


def _text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case date() | Decimal():
            return str(value)
        case float():
            return f"{value:g}"
        case list() | tuple():
            return f"[{','.join(map(_text, value))}]"
        case _:
            # What would break the grid is shown in another way.
            return str(value).replace("\n", " ").replace(" | ", " / ").strip()
