"""The bridge: the one object that Spark's JVM calls, on the thread of the statement it works on."""

import pickle
from collections.abc import Callable, Mapping
from typing import ClassVar

from py4j.java_gateway import JavaClass, JavaGateway, JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from lakewarden.engine.spark.workers.older_sparks import frame_of
from lakewarden.procedures.declaring.caller import named_place, open_table, table_at
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.procedures.registry import PROCEDURES
from lakewarden.sql_ext.calls import call, check, spark_rows
from lakewarden.sql_ext.declared import declarations
from lakewarden.sql_ext.rewriting import rewritten
from lakewarden.sql_ext.session.answers import OF_CODE, PROTOCOL, answer
from lakewarden.sql_ext.session.catalog_places import is_foreign
from lakewarden.sql_ext.session.permitted import permissions_in
from lakewarden.sql_ext.session.statement import Statement
from lakewarden.sql_ext.table_functions.hudi_relations import hudi_relation
from lakewarden.sql_ext.table_functions.known_tables import known_rows
from lakewarden.sql_ext.tables.table_bridge import TableBridge

# What py4j calls its own end in the JVM.
_SERVER = "GATEWAY_SERVER"


class PythonBridge(TableBridge):
    """Answers the JVM. Every public method but `apply` is an operation that it may ask for."""

    class Java:
        """What py4j has to know."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]

    def __init__(self, statements: JavaClass, context_factory: JavaClass) -> None:
        super().__init__(context_factory)
        self._statements = statements

    def _session(self) -> SparkSession:
        return Statement(self._statements.current(), Permissions(), {}).spark

    def apply(self, operation: str, request: bytes) -> bytes:
        """Answer a request; whatever happens is in the answer."""
        return answer(lambda: getattr(self, operation)(**pickle.loads(request)))

    def check(self, name: str, positional: int, named: list[str]) -> None:
        """Whether a procedure can be called with these arguments."""
        check(name, positional, named)

    def call(
        self,
        name: str,
        positional: list[object],
        named: Mapping[str, object],
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> object:
        """Call a procedure."""
        statement = Statement(self._statements.current(), permissions_in(permissions), settings)
        return call(statement, name, positional, named)

    def path_of(
        self, table: str, settings: Mapping[str, str], permissions: Mapping[str, str]
    ) -> str:
        """Where a table is that a function is given by its name or its path, if it is one."""
        statement = Statement(self._statements.current(), permissions_in(permissions), settings)
        place = named_place(statement, table, None)
        statement.permissions.check_path(place.path)
        table_at(statement, place)
        return place.path

    def function_rows(
        self,
        function: str,
        table: str,
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> object:
        """The rows of a table function of a table."""
        statement = Statement(self._statements.current(), permissions_in(permissions), settings)
        return spark_rows(known_rows(statement, function, table))

    def hudi_relation(
        self,
        function: str,
        table: str,
        argument: str,
        place: int,
        settings: Mapping[str, str],
        permissions: Mapping[str, str],
    ) -> None:
        """Put the rows of a table function of Hudi's into the registry, as a plan."""
        statement = Statement(self._statements.current(), permissions_in(permissions), settings)
        rows = hudi_relation(function, open_table(statement, table, None), argument)
        frame = frame_of(statement.spark, rows)
        self._context_factory.put(place, frame._jdf.queryExecution().analyzed())

    def rewrite(self, statement: str, *, has_hudi: bool) -> str:
        """A statement of ours as a call; any other one as it is."""
        return rewritten(statement, lambda table: self._is_foreign(table, has_hudi=has_hudi))

    def _is_foreign(self, table: str, *, has_hudi: bool) -> bool:
        """Whether statements on a table are for Spark, or for Hudi's own extension."""
        found = pickle.loads(self._statements.current().table(table))
        return is_foreign(found, has_hudi=has_hudi)


def open_bridge(gateway: JavaGateway) -> None:
    """Let the JVM ask this process from now on."""
    start: Callable[[JavaGateway], None] = ensure_callback_server_started
    start(gateway)
    classes = gateway.jvm.io.lakewarden.spark
    declared = pickle.dumps(declarations(PROCEDURES), PROTOCOL)
    client = JavaObject(_SERVER, gateway._gateway_client).getCallbackClient()
    # Handlers of scripts name conditions before any of them has come true.
    for code, state in OF_CODE.items():
        classes.LakewardenException.register(code.upper(), state)
    classes.PythonBridge.open(
        PythonBridge(classes.Statement, classes.PlanRegistry), client, declared
    )
