"""The operations that Spark's rules ask for when a statement names a table of ours."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

from lakewarden.procedures.declaring.permissions import resolved
from lakewarden.source_options import (
    arrow_columns,
    check_options,
    named_options,
    save,
    saved_table,
)
from lakewarden.sql_ext.session.permitted import check_settings, permissions_in
from lakewarden.sql_ext.tables import creating, reading, writing
from lakewarden.sql_ext.tables.partitions import Values, add, drop, shown
from lakewarden.sql_ext.tables.statement_options import said_options, session_settings
from lakewarden.table import Table


class TableBridge(ABC):
    """Answers about tables. Plans do not pass the bridge: they lie in the registry of the JVM."""

    def __init__(self, context_factory: JavaClass) -> None:
        self._context_factory = context_factory

    @abstractmethod
    def _session(self) -> SparkSession:
        """The session of the statement that the JVM asks about."""

    def describe_table(
        self, path: str, options: Mapping[str, str], permissions: Mapping[str, str]
    ) -> dict[str, object]:
        """The columns of a table."""
        permissions_in(permissions).check_path(path)
        return reading.describe(path, options)

    def check_source(
        self,
        paths: Sequence[str],
        options: Mapping[str, str],
        permissions: Mapping[str, str],
        *,
        changes: bool,
    ) -> None:
        """Whether the data source may be used with these options."""
        allowed = permissions_in(permissions)
        if changes:
            allowed.check_change("A write by the data source")
            check_options(named_options(options))
        for path in paths:
            allowed.check_path(path)
        check_settings(allowed, options)

    def check_change(self, what: str, paths: Sequence[str], permissions: Mapping[str, str]) -> None:
        """Whether tables at some paths may be changed."""
        allowed = permissions_in(permissions)
        allowed.check_change(what)
        for path in paths:
            allowed.check_path(path)

    def check_statement(
        self, what: str, paths: Sequence[str], permissions: Mapping[str, str], *, changes: bool
    ) -> list[str]:
        """Whether a statement of Spark's own may be carried out; where its paths lead to."""
        allowed = permissions_in(permissions)
        if changes:
            allowed.check_storage(what)
        for path in paths:
            allowed.check_path(path)
        return [resolved(path) for path in paths]

    def scan_table(
        self,
        path: str,
        options: Mapping[str, str],
        moment: int,
        columns: Sequence[str],
        conditions: Sequence[Sequence[object]],
        place: int,
    ) -> None:
        """Put the plan of a scan into the registry."""
        frame = reading.scan(self._session(), path, options, moment, columns, conditions)
        self._context_factory.put(place, frame._jdf.queryExecution().analyzed())

    def write_table(
        self,
        kind: str,
        path: str,
        options: Mapping[str, str],
        details: Mapping[str, object],
        permissions: Mapping[str, str],
        place: int,
    ) -> None:
        """Execute the statement that lies in the registry."""
        self.check_change("The statement", [path], permissions)
        allowed = permissions_in(permissions)
        check_settings(allowed, session_settings(details))
        check_settings(allowed, said_options(path, options, details))
        writing.write(
            self._session(), self._context_factory.get(place), kind, path, options, details
        )

    def save_frame(
        self,
        path: str,
        options: Mapping[str, str],
        permissions: Mapping[str, str],
        place: int,
        *,
        overwrites: bool,
    ) -> None:
        """Write the frame in the registry by its options, also into a table that is not there."""
        self.check_source([path], options, permissions, changes=True)
        frame = DataFrame(self._context_factory.get(place), self._session())
        given = named_options(options)
        table = saved_table(reading.location_of(path, options), given, arrow_columns(frame.schema))
        save(table, frame, given, overwrites=overwrites)

    def truncate_table(
        self,
        path: str,
        options: Mapping[str, str],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> None:
        """Delete all rows of a table."""
        self.check_change("TRUNCATE TABLE", [path], permissions)
        _opened(path, options, settings, permissions).truncate()

    def drop_partitions(
        self,
        path: str,
        options: Mapping[str, str],
        partitions: Sequence[Values],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
        *,
        if_exists: bool,
    ) -> None:
        """Delete everything in some partitions."""
        self.check_change("The statement", [path], permissions)
        table = _opened(path, options, settings, permissions)
        drop(table, partitions, if_exists=if_exists)

    def add_partitions(
        self,
        path: str,
        options: Mapping[str, str],
        partitions: Sequence[Values],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
        *,
        if_not_exists: bool,
    ) -> None:
        """Make partitions without rows."""
        self.check_change("The statement", [path], permissions)
        add(_opened(path, options, settings, permissions), partitions, if_not_exists=if_not_exists)

    def check_partitions(
        self,
        path: str,
        options: Mapping[str, str],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> None:
        """MSCK REPAIR: the table knows its partitions, if it can be read."""
        self.check_change("The statement", [path], permissions)
        _opened(path, options, settings, permissions).partitions()

    def alter_table(
        self,
        path: str,
        options: Mapping[str, str],
        changes: Sequence[Mapping[str, object]],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> None:
        """Change columns and properties of a table."""
        self.check_change("ALTER TABLE", [path], permissions)
        check_settings(permissions_in(permissions), creating.properties_in(changes))
        creating.alter(_opened(path, options, settings, permissions), changes)

    def show_partitions(
        self,
        path: str,
        options: Mapping[str, str],
        values: Values,
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> list[str]:
        """The partitions that have some values."""
        return shown(_opened(path, options, settings, permissions), values)

    def create_table(
        self,
        *,
        path: str,
        name: str,
        columns: str,
        partitions: Sequence[str],
        properties: Mapping[str, str],
        must_be_new: bool,
        permissions: Mapping[str, str],
    ) -> dict[str, object]:
        """Create a table, or look at the one there is."""
        allowed = permissions_in(permissions)
        allowed.check_path(path)
        check_settings(allowed, properties)
        wanted = creating.Wanted(path, name, columns, partitions, properties)
        return creating.create(wanted, allowed, must_be_new=must_be_new)


def _opened(
    path: str,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    permissions: Mapping[str, str],
) -> Table:
    """The table with what a session sets for it, as far as that is allowed."""
    check_settings(permissions_in(permissions), settings)
    location = reading.location_of(path, options)
    return Table(location.uri, location.options, session=settings)
