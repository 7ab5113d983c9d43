"""Registration: each function by its name, and where its columns and rows come from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.udtf import UserDefinedTableFunction

from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.declaring.declaration import Procedure
from lakewarden.procedures.registry import PROCEDURES
from lakewarden.sql_ext.session.permitted import permissions_of
from lakewarden.sql_ext.session.table_settings import table_settings
from lakewarden.sql_ext.table_functions.functions import (
    Attempts,
    Files,
    MissingPartitions,
    Partitions,
    publish,
)
from lakewarden.sql_ext.table_functions.handler import handler
from lakewarden.storage_options import storage_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function of one argument, the path of a table; the planner puts it in a name's place."""

    name: str
    procedure: Procedure
    # What a procedure that people read leaves out, a query does not.
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def return_type(self) -> str:
        """The columns as SQL declares them."""
        return ", ".join(f"`{one.name}` {one.type}" for one in self.procedure.columns)


_ALL: Mapping[str, object] = {"limit": None}
_OF_PROCEDURES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "lakewarden_timeline": ("show_timeline", _ALL),
    "lakewarden_plans": ("show_plans", {}),
    "lakewarden_heartbeats": ("show_heartbeats", {}),
    "lakewarden_locks": ("show_locks", {}),
    "lakewarden_streams": ("show_streams", {}),
    "lakewarden_markers": ("show_markers", {}),
    "lakewarden_rivals": ("show_rivals", {}),
    "lakewarden_indexes": ("show_indexes", {}),
    "lakewarden_rollbacks": ("show_rollbacks", _ALL),
    "lakewarden_commits": ("show_commits", _ALL),
    "lakewarden_metadata": ("show_metadata_table_stats", {}),
    "lakewarden_blockers": ("show_blockers", {}),
    "lakewarden_health": ("table_health", {}),
}
# What people have no procedure for.
_OWN = (Attempts, Files, MissingPartitions, Partitions)


def _functions() -> Iterable[TableFunction]:
    for name, (procedure, arguments) in _OF_PROCEDURES.items():
        yield TableFunction(name, PROCEDURES[procedure], arguments)
    for call in _OWN:
        yield TableFunction(call.declaration.name, call.declaration)


TABLE_FUNCTIONS: Mapping[str, TableFunction] = {one.name: one for one in _functions()}


def register(spark: "SparkSession", caller: PlainCaller | None = None) -> None:
    """Let queries of a session, and of those that are made later, call the functions.

    They work in Spark's workers, as `caller`: what it may touch, and how it reaches storages, goes
    with them. Without one it is what the session's owner has set.
    """
    caller = caller or caller_of(spark)
    for function in TABLE_FUNCTIONS.values():
        made = handler(function.procedure, function.arguments, caller)
        as_function = UserDefinedTableFunction(made, function.return_type)
        spark.udtf.register(function.name, as_function)
    publish(spark, TABLE_FUNCTIONS)


def caller_of(spark: "SparkSession") -> PlainCaller:
    """The permissions of a Spark context's owner, and the session's ways to storages."""
    return PlainCaller(
        storage_options=storage_options(table_settings(spark)),
        permissions=permissions_of(spark.sparkContext),
    )
