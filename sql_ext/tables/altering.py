"""Altering: ALTER TABLE and COMMENT ON as changes of a table's columns and properties."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from lakewarden.engine.table.alteration import ColumnChange, of_mapping
from lakewarden.engine.write.operations import alter as altered_columns
from lakewarden.source_writer import arrow_columns
from lakewarden.sql_ext.tables.creating import table_properties
from lakewarden.table import Table

Changes = Sequence[Mapping[str, object]]


def alter(table: Table, changes: Changes) -> None:
    """Make the changes; properties that only the catalog keeps are none of the table's."""
    columns = [_column(one) for one in changes if one["kind"] not in ("set", "unset")]
    if columns:
        table.write(altered_columns(columns))
        return
    unset = [str(one["key"]) for one in changes if one["kind"] == "unset"]
    table.set_settings(
        table_properties(properties_in(changes)), tuple(table_properties(dict.fromkeys(unset, "")))
    )


def properties_in(changes: Changes) -> dict[str, str]:
    """The properties that are set."""
    return {str(one["key"]): str(one["value"]) for one in changes if one["kind"] == "set"}


def _column(said: Mapping[str, object]) -> ColumnChange:
    return of_mapping(said, _type(said.get("type")))


def _type(said: object) -> pa.DataType | None:
    """A type of Spark's, in the JSON of a column."""
    if said is None:
        return None
    return arrow_columns(StructType.fromJson(json.loads(str(said)))).field(0).type
