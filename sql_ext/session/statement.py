"""Statements: what a call knows of the session it was made in."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewarden.engine.kernel.events import EventSink
from lakewarden.procedures.declaring.caller import TableAddress
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.progress import reporting
from lakewarden.sql_ext.session.answers import interrupted
from lakewarden.sql_ext.session.catalog_places import place_of, tables_of
from lakewarden.storage_options import storage_options


@dataclass(frozen=True)
class Statement:
    """The caller that a SQL statement is: its session, and the thread that runs it."""

    jvm_statement: JavaObject
    permissions: Permissions
    settings: Mapping[str, str]

    @cached_property
    def spark(self) -> SparkSession:
        """The session that the statement runs in; its jobs can be cancelled like the statement."""
        context = SparkContext._active_spark_context
        assert context is not None
        return SparkSession(context, self.jvm_statement.session())

    def place_of(self, table: str) -> TableAddress:
        """Where the catalog says that a table is; a path stands for itself."""
        if "/" in table:
            return self.place_at(table)
        return place_of(table, pickle.loads(self.jvm_statement.table(table)), self._storage_options)

    def place_at(self, path: str) -> TableAddress:
        return TableAddress(path, self._storage_options)

    def tables_in(self, database: str) -> Sequence[str]:
        return tables_of(database, pickle.loads(self.jvm_statement.tables(database)))

    @property
    def _storage_options(self) -> Mapping[str, object]:
        return storage_options(self.settings)

    @property
    def events(self) -> EventSink:
        return reporting(None)

    def check_interrupted(self) -> None:
        """Raise when the client has cancelled the statement."""
        if self.jvm_statement.isInterrupted():
            raise interrupted()
