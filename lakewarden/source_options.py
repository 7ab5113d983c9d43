"""Source options: what options of the format `lakewarden` ask for, and the writes that they mean.

Also on Sparks without Python data sources, where SQL has its options from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from lakewarden.engine.index.options import BUCKET_COUNT, BUCKET_ENGINE, BUCKET_FIELDS, INDEX_TYPE
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.captured import CDC, LATEST_STATE, CapturedScan, plan_window
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.services.options import ALL_SETTINGS, understood
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.creation import is_creation_property
from lakewarden.engine.table.description import KEY, OPERATION, ORDERING, PARTITION, described
from lakewarden.engine.write.operations import Rows
from lakewarden.engine.write.settings import EVOLVE
from lakewarden.storage_options import is_for_storage
from lakewarden.table import Table

FORMAT = "lakewarden"
AS_OF, SINCE, UNTIL, QUERY_TYPE, CHANGES_MODE = (
    "as.of.instant",
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.end.instanttime",
    "hoodie.datasource.query.type",
    "hoodie.datasource.query.incremental.format",
)
_INCREMENTAL = "incremental"
# Our words for what Hudi's options say.
_SHORT = {"as_of": AS_OF, "since": SINCE, "until": UNTIL, "mode": QUERY_TYPE}
PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
WRITES = ("upsert", "insert", "bulk_insert", "delete")
_IDENTIFYING = frozenset((INDEX_TYPE.key, BUCKET_ENGINE.key, BUCKET_COUNT.key, BUCKET_FIELDS.key))


def named_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are not about the place, by Hudi's names."""
    return {
        _SHORT.get(key, key): value
        for key, value in options.items()
        if key != "path" and not is_for_storage(key)
    }


def asked_scan(
    state: Snapshot, options: Mapping[str, str], query: Query | None = None
) -> Scan | CapturedScan:
    """The scan that options ask for; columns and filter are those of the query."""
    query = query or Query()
    understood(options, ALL_SETTINGS, (*_SHORT, *_SHORT.values(), CHANGES_MODE))
    kind = _kind(options)
    if kind == _INCREMENTAL:
        since, mode = options.get(SINCE, "0"), options.get(CHANGES_MODE, LATEST_STATE)
        return plan_window(state, since, options.get(UNTIL), query, mode.lower())
    return plan_query(state, replace(query, as_of=options.get(AS_OF), mode=kind))


def asks_for_changes(options: Mapping[str, str]) -> bool:
    """Whether options ask for what commits did to rows, which has columns of its own."""
    return _kind(options) == _INCREMENTAL and options.get(CHANGES_MODE, "").lower() == CDC


def _kind(options: Mapping[str, str]) -> str:
    return options.get(QUERY_TYPE, _INCREMENTAL if SINCE in options else "snapshot")


def check_options(options: Mapping[str, str]) -> str:
    """Refuse options that a write cannot take, before Spark computes any row; the operation."""
    understood(options, ALL_SETTINGS, (PARTITIONS_TO_DELETE,))
    described(options)
    operation = options.get(OPERATION, WRITES[0]).lower()
    known = (*WRITES, "insert_overwrite", "insert_overwrite_table", "delete_partition")
    if operation not in known:
        raise InvalidRequest(
            "unsupported_operation",
            what=f"The data source has no operation {operation!r}.",
            why=f"It has {', '.join(known)}, and overwrites with mode('overwrite').",
            now="For others use the methods of lakewarden.Table.",
            operation=operation,
        )
    return operation


def saved_table(location: Location, options: Mapping[str, str], schema: pa.Schema) -> Table:
    """The table that a frame is saved to, which is created if there is none."""
    try:
        return Table(location.uri, location.options)
    except InvalidRequest as error:
        if error.code != "no_table":
            raise
    said = described(options)
    return Table.create(
        location.uri,
        schema,
        key=said.key or _no_key(check_options(options)),
        partition=said.partition,
        ordering=said.ordering,
        type=said.type or "cow",
        merge_mode=said.merge_mode or None,
        properties={key: value for key, value in said.properties.items() if _is_kept(key)},
        storage_options=location.options,
    )


def save(table: Table, rows: Rows, options: Mapping[str, str], *, overwrites: bool) -> None:
    """Write the rows of a frame: appended as the options say, or in the place of all there are."""
    # A frame changes the columns of a table, as it does with Hudi.
    given = {EVOLVE.key: "true", **options}
    partitions = given.pop(PARTITIONS_TO_DELETE, "")
    match "insert_overwrite_table" if overwrites else check_options(options):
        case "insert_overwrite_table":
            table.overwrite(rows, given)
        case "insert_overwrite":
            table.overwrite_partitions(rows, given)
        case "delete_partition":
            table.delete_partitions([one.strip() for one in partitions.split(",")], given)
        case operation:
            getattr(table, operation)(rows, options=given)


def _no_key(operation: str) -> list[str]:
    """As in Hudi: inserts may do without, and get generated keys."""
    if operation in ("insert", "bulk_insert"):
        return []
    raise InvalidRequest(
        "missing_key",
        what="No table is there, and the call cannot create one.",
        why="No option names the key columns, which every operation but insert needs.",
        now=f"Set {KEY[0]}, and if the table has them {PARTITION[0]} and {ORDERING[0]}.",
    )


def _is_kept(key: str) -> bool:
    """Whether an option says what a new table is, for all of its writers."""
    return is_creation_property(key) or key in _IDENTIFYING


def arrow_columns(schema: StructType) -> pa.Schema:
    """The columns of a Spark schema, with times in UTC: newer releases have to set that.

    Avro's texts have no length, so that `VARCHAR(n)` and `CHAR(n)` are texts.
    """
    convert: Callable[..., pa.Schema] = to_arrow_schema
    schema = StructType([_with_texts(field) for field in schema])
    asks = "timezone" in signature(convert).parameters
    return convert(schema, timezone="UTC") if asks else convert(schema)


def _with_texts(field: StructField) -> StructField:
    return StructField(field.name, _text(field.dataType), field.nullable, field.metadata)


def _text(kind: DataType) -> DataType:
    """The same type with texts of any length, inside of others, too."""
    match kind:
        case VarcharType() | CharType():
            return StringType()
        case StructType():
            return StructType([_with_texts(field) for field in kind])
        case ArrayType():
            return ArrayType(_text(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_text(kind.keyType), _text(kind.valueType), kind.valueContainsNull)
    return kind
