"""`copy_to_table` and `copy_to_temp_view`: the rows of a table under another name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Also,
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, one_word

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERIES = ("snapshot", "incremental", "read_optimized")
_SAVE_MODES = ("overwrite", "append")

QueryType = Annotated[str, "snapshot, incremental or read_optimized"]
BeginTime = Annotated[str, "Of an incremental query: rows of commits after this instant."]
EndTime = Annotated[str, "Of an incremental query: rows of commits up to this instant."]
AsOfInstant = Annotated[str, "Of a snapshot: the rows as of this instant."]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """What Hudi answers."""

    status: Annotated[int, "0: done"]


@procedure("copy_to_table", is_mutating=True)
class CopyToTable(Call):
    """Copy the rows of a table into a new one of the session's default format, or an existing one.

    Without `columns`, the copy has Hudi's own columns as well.
    """

    table: TableName = None
    query_type: QueryType = _QUERIES[0]
    new_table: Annotated[str, "The name of the copy in the catalog."]
    begin_instance_time: BeginTime = ""
    end_instance_time: EndTime = ""
    as_of_instant: AsOfInstant = ""
    save_mode: Annotated[str, "overwrite or append"] = _SAVE_MODES[0]
    columns: Annotated[str, "Only these columns, with commas."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    Row = CopyRow

    def run(self, caller: Caller) -> Iterable[CopyRow]:
        spark = _session(caller, "copy_to_table")
        mode = one_word("save_mode", self.save_mode, _SAVE_MODES)
        frame = _frame(caller, spark, self)
        there = spark.catalog.tableExists(self.new_table)
        chosen = spark.table(self.new_table).columns if there else listed(self.columns)
        if there and any(name not in frame.columns for name in chosen):
            raise _other_columns(self.new_table, chosen)
        if not self.dry_run:
            kept = frame.select(*chosen) if chosen else frame
            kept.write.mode(mode).saveAsTable(self.new_table)
        yield CopyRow(status=0)


@procedure("copy_to_temp_view")
class CopyToTempView(Call):
    """Make a temporary view of the rows of a table as they are now."""

    table: TableName = None
    query_type: QueryType = _QUERIES[0]
    view_name: Annotated[str, "The name of the view."]
    begin_instance_time: BeginTime = ""
    end_instance_time: EndTime = ""
    as_of_instant: AsOfInstant = ""
    replace: Annotated[bool, "Replace a view of that name."] = False
    is_global: Annotated[bool, "For all sessions, in the database global_temp.", Also("global")] = (
        False
    )
    path: TablePath = None

    Row = CopyRow

    def run(self, caller: Caller) -> Iterable[CopyRow]:
        frame = _frame(caller, _session(caller, "copy_to_temp_view"), self)
        match self.replace, self.is_global:
            case True, True:
                frame.createOrReplaceGlobalTempView(self.view_name)
            case True, False:
                frame.createOrReplaceTempView(self.view_name)
            case False, True:
                frame.createGlobalTempView(self.view_name)
            case _:
                frame.createTempView(self.view_name)
        yield CopyRow(status=0)


def _frame(
    caller: Caller, spark: "SparkSession", call: CopyToTable | CopyToTempView
) -> "DataFrame":
    table = open_table(caller, call.table, call.path)
    match one_word("query_type", call.query_type, _QUERIES):
        case "incremental":
            if not call.begin_instance_time or not call.end_instance_time:
                raise InvalidRequest(
                    "bad_argument",
                    what="An incremental copy has no begin_instance_time or no end_instance_time.",
                    why="It has the rows of commits between two instants.",
                    now="Give both.",
                    argument="begin_instance_time",
                )
            return table.changes(spark, call.begin_instance_time, call.end_instance_time)
        case "read_optimized":
            return table.read(spark, mode="read_optimized")
    return table.read(spark, as_of=call.as_of_instant or None)


def _session(caller: Caller, name: str) -> "SparkSession":
    if caller.spark is None:
        raise InvalidRequest(
            "no_session",
            what=f"{name} needs a Spark session.",
            why="Its answer is a table or a view of a session's catalog.",
            now="CALL it in a session. `lakewarden read` writes rows to files.",
        )
    return caller.spark


def _other_columns(name: str, columns: Iterable[str]) -> InvalidRequest:
    return InvalidRequest(
        "table_differs",
        what=f"The table {name} has columns that the rows lack.",
        why=f"It has {', '.join(columns)}.",
        now="Choose another name.",
    )
