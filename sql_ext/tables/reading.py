"""Reading: what a table looks like to Spark's analyser, and the plan of its scan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.needs import Need, Term
from lakewarden.engine.read.merge.predicate import Condition, bind_filter
from lakewarden.engine.read.merge.row_changes import CHANGE_SCHEMA
from lakewarden.engine.read.query.answer import naming_removals
from lakewarden.engine.read.query.captured import CapturedScan
from lakewarden.engine.read.query.plan_query import Query, parse_time
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.spark.scan.frames import local_frame, planned_frame, scan_frame
from lakewarden.engine.spark.scan.where import sql_condition
from lakewarden.engine.spark.workers.types import ddl
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.alteration import column_comments
from lakewarden.engine.table.config import SETTING_PREFIX, TableConfig, TableType
from lakewarden.engine.table.schema import META_COLUMNS, RECORD_KEY, TableSchema
from lakewarden.engine.timeline.instants.instant import time_text
from lakewarden.engine.write.rows.evolve import not_nullable
from lakewarden.source_options import AS_OF, FORMAT, asked_scan, asks_for_changes, named_options
from lakewarden.sql_ext.tables.snapshots import SNAPSHOTS
from lakewarden.storage_options import storage_options

# What Spark's TIMESTAMP AS OF has become: microseconds since the epoch.
MICROS_PREFIX = "micros:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_AS_THEY_ARE = frozenset(
    {"byte", "short", "integer", "long", "string", "boolean", "float", "double"}
)


def location_of(path: str, options: Mapping[str, str]) -> Location:
    """Where a table is, from its path and those options that say how to get there."""
    return Location(path, storage_options(options))


def describe(path: str, options: Mapping[str, str]) -> dict[str, object]:
    """The columns of a table and what identifies its rows, as it is now or as options say."""
    found = SNAPSHOTS.now(location_of(path, options))
    state, config = found.snapshot, found.snapshot.config
    if asks_for_changes(named_options(options)):
        return {
            "moment": found.number,
            "meta_columns": "",
            "columns": ddl(CHANGE_SCHEMA),
            "partitions": [],
            "identity": [],
            "properties": _shown(config, path),
        }
    # Statements that change rows find them by their keys, wherever these are from.
    schema = state.schema(parse_time(_asked(state, options).get(AS_OF), state.zone)).with_meta()
    own = [field for field in schema if field.name not in META_COLUMNS]
    partitions = [field.name for field in config.partitions.fields]
    identifying = (*config.key_fields, *partitions, *config.merge.ordering_fields)
    kept = not_nullable(state.schema()) | {name.partition(".")[0] for name in identifying}
    return {
        "moment": found.number,
        "meta_columns": ddl(pa.schema([one for one in schema if one.name in META_COLUMNS])),
        "columns": _with_comments(own, state.schema()),
        "partitions": [name for name in partitions if name in schema.names],
        "identity": [
            *([] if config.key_fields else [RECORD_KEY]),
            *(field.name for field in own if field.name in kept),
        ],
        "properties": _shown(config, path),
    }


def _with_comments(fields: Sequence[pa.Field], schema: TableSchema) -> str:
    """Columns as SQL declares them, with the comments that the table keeps."""
    comments = column_comments(schema)
    declared = []
    for field in fields:
        text = comments.get(field.name, "").replace("\\", "\\\\").replace("'", "\\'")
        declared.append(ddl(pa.schema([field])) + (f" COMMENT '{text}'" if text else ""))
    return ", ".join(declared)


# Properties that a table gets where nothing is said about them.
_USUAL: Mapping[str, str] = {
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
}


def _shown(config: TableConfig, path: str) -> dict[str, str]:
    """What DESCRIBE and SHOW CREATE TABLE tell of a table."""
    shown = {
        "provider": FORMAT,
        "location": path,
        "type": "mor" if config.table_type is TableType.MERGE_ON_READ else "cow",
        "primaryKey": ",".join(config.key_fields),
        "orderingFields": ",".join(config.merge.ordering_fields),
        **_said_at_creation(config),
    }
    return {name: value for name, value in shown.items() if value}


def _said_at_creation(config: TableConfig) -> dict[str, str]:
    """What a statement has to say so that it makes such a table again."""
    kept = {
        name.removeprefix(SETTING_PREFIX): text
        for name, text in config.properties.items()
        if name.startswith(SETTING_PREFIX)
    }
    others = {
        name: config.properties[name]
        for name, usual in _USUAL.items()
        if config.properties.get(name, usual).lower() != usual
    }
    return dict(sorted({**others, **kept}.items()))


def scan(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str],
    moment: int,
    columns: Sequence[str],
    conditions: Sequence[Sequence[object]],
) -> DataFrame:
    """The frame that reads a table's columns; rows that fail the conditions need not be in it."""
    state = SNAPSHOTS.numbered(moment, location_of(path, options))
    asked = _asked(state, options)
    filter_, needs = _filter(state, asked, conditions)
    query = Query(columns=columns, filter=filter_ or None, needs=needs)
    planned = asked_scan(state, asked, query)
    if isinstance(planned, CapturedScan):
        return planned_frame(spark, state.storage, planned, LocalExecutor())
    SNAPSHOTS.note(moment, planned.spec)
    if planned.spec.predicate is not None and sql_condition(planned.spec) is None:
        planned = replace(planned, spec=replace(planned.spec, predicate=None))
    executor = LocalExecutor()
    with naming_removals(state):
        found = local_frame(spark, state.storage, planned, executor)
    if found is not None:
        return found
    return scan_frame(spark, state.storage, planned, executor)


def _asked(state: Snapshot, options: Mapping[str, str]) -> dict[str, str]:
    """The options about what is read, with the time of a time travel as the table spells times."""
    asked = named_options(options)
    moment = asked.get(AS_OF, "")
    if moment.startswith(MICROS_PREFIX):
        moment_ms = int(moment.removeprefix(MICROS_PREFIX)) // 1000
        try:
            asked[AS_OF] = time_text(moment_ms, state.zone)
        except OverflowError:
            raise InvalidRequest(
                "bad_time",
                what="The statement asks for a time after the year 9999.",
                why="Spark takes a number for seconds since 1970; an instant is a text.",
                now="Write the instant in quotes: TIMESTAMP AS OF '20261118101500123'.",
            ) from None
    return asked


def _filter(
    state: Snapshot, asked: Mapping[str, str], conditions: Sequence[Sequence[object]]
) -> tuple[list[Condition], tuple[Need, ...]]:
    """The conditions that the engine can check, and those that only indexes can speak about.

    Spark checks all of them anyhow.
    """
    schema = CHANGE_SCHEMA
    if not asks_for_changes(asked):
        schema = state.schema(parse_time(asked.get(AS_OF), state.zone)).with_meta()
    usable: list[Condition] = []
    needs: list[Need] = []
    for subject, operator, type_, given in conditions:
        try:
            value = None if operator == "is null" else constant(str(type_), given)
            if not isinstance(subject, str):
                needs.append((_term(cast(Sequence[str], subject)), str(operator), value))
                continue
            condition = (subject, str(operator), value)
            bind_filter([condition], schema)
        except (InvalidRequest, OverflowError):
            continue
        usable.append(condition)
    return usable, tuple(needs)


def _term(parts: Sequence[str]) -> Term:
    """A function of a column, as the rules of the planner spell it."""
    function, column, zone, *options = (str(part) for part in parts)
    pairs = tuple(zip(options[::2], options[1::2], strict=True))
    return Term(function, column, pairs, zone or None)


def constant(type_: str, value: object) -> object:
    """A constant of Spark's as Arrow takes it; Spark keeps dates and times as numbers."""
    if isinstance(value, list | tuple):
        return [constant(type_, one) for one in value]
    if type_ in _AS_THEY_ARE:
        return value
    if type_.startswith("decimal"):
        return Decimal(str(value))
    assert isinstance(value, int)
    if type_ == "date":
        return _EPOCH_DAY + timedelta(days=value)
    moment = _EPOCH + timedelta(microseconds=value)
    return moment if type_ == "timestamp" else moment.replace(tzinfo=None)
