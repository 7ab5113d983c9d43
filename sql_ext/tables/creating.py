"""Creating: CREATE TABLE as the engine's creation of a table, or a look at the one there is.

Altering: ALTER TABLE and COMMENT ON as changes of a table's columns and properties.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import StructType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings, refuse_unknown
from lakewarden.engine.services.compaction.settings import INLINE as COMPACT_INLINE
from lakewarden.engine.services.options import ALL_SETTINGS, understood
from lakewarden.engine.spark.workers.types import ddl
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.alteration import ColumnChange, of_mapping
from lakewarden.engine.table.config import PROPERTIES_PATH, TableType
from lakewarden.engine.table.description import SHORT_NAMES, described, refuse_other
from lakewarden.engine.table.keygen.partition_paths import TIMESTAMPS_AS_TEXT, TIMESTAMPS_KEY
from lakewarden.engine.table.schema import META_COLUMNS
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.engine.write.operations import alter as altered_columns
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.source_options import arrow_columns
from lakewarden.sql_ext.tables.reading import location_of
from lakewarden.storage_options import is_for_storage
from lakewarden.table import Table

# Keys of tables begin so; Spark keeps others in the catalog, as it does for any table.
_PREFIXES = ("hoodie.", "lakewarden.")
# Whether an entry of the catalog shows base files only.
VIEW_KEY = "hoodie.query.as.ro.table"
_WITHOUT_LOGS = ("", "cow", "copy_on_write")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement says of a table; the columns are in Spark's JSON."""

    path: str
    name: str
    columns: str
    partitions: Sequence[str]
    properties: Mapping[str, str]

    @property
    def partition(self) -> list[str]:
        """The partition columns, spelled as the columns are."""
        names = [field["name"] for field in json.loads(self.columns)["fields"]]
        return as_spelled(self.partitions, names)

    @property
    def location(self) -> Location:
        return location_of(self.path, self.properties)

    @property
    def is_view(self) -> bool:
        """Whether it is one of the two views that Hudi has of a merge-on-read table."""
        return VIEW_KEY in self.properties

    def schema(self) -> pa.Schema:
        """The columns; those of partitions last, as tables of Spark and Hudi have them."""
        columns = arrow_columns(StructType.fromJson(json.loads(self.columns)))
        last = [name for name in self.partition if name in columns.names]
        return pa.schema(
            [
                *(field for field in columns if field.name not in last),
                *(columns.field(name) for name in last),
            ]
        )


def create(wanted: Wanted, permissions: Permissions, *, must_be_new: bool) -> dict[str, object]:
    """Create a table if there is none; its columns and partitions as they are then."""
    location = wanted.location
    is_there = _is_there(location)
    if wanted.is_view and (must_be_new or not is_there):
        raise _no_view(location, "The statement makes a table, which has no rows yet.")
    if is_there:
        table = Table(location.uri, location.options)
        if wanted.is_view and table.config.table_type is not TableType.MERGE_ON_READ:
            raise _no_view(location, "The table is copy-on-write: it has base files only.")
        if must_be_new and table.state().timeline.active.completed(COMPLETED_WRITES):
            raise _taken(location)
        _refuse_other(table, wanted)
        if must_be_new:
            # Left by a statement of which no row was written.
            said = table_properties(wanted.properties)
            refuse_other(table.config, understood(said, ALL_SETTINGS))
    else:
        table = _created(wanted, permissions)
    own = pa.schema([field for field in table.schema if field.name not in META_COLUMNS])
    names = [field.name for field in table.config.partitions.fields]
    return {"columns": ddl(own), "partitions": [name for name in names if name in own.names]}


def _created(wanted: Wanted, permissions: Permissions) -> Table:
    schema, location = wanted.schema(), wanted.location
    if not schema.names:
        raise InvalidRequest(
            "no_table",
            what=f"No table is at {location.uri}.",
            why="The location has no hoodie.properties, and the statement names no columns.",
            now="Correct the location, or add columns to create a table.",
            path=location.uri,
        )
    permissions.check_change("CREATE TABLE")
    given = understood(table_properties(wanted.properties), ALL_SETTINGS)
    said = described({"hoodie.table.name": wanted.name, **given})
    if Settings.of(arguments=given)[COMPACT_INLINE] and said.type.lower() in _WITHOUT_LOGS:
        raise InvalidRequest(
            "unsupported_property",
            what="Lakewarden cannot make a copy-on-write table with hoodie.compact.inline=true.",
            why="Only merge-on-read tables have logs to compact.",
            now="Leave the property out, or add type = 'mor'.",
            property=COMPACT_INLINE.key,
        )
    return Table.create(
        location.uri,
        schema,
        key=as_spelled(said.key, schema.names),
        partition=wanted.partition or as_spelled(said.partition, schema.names),
        ordering=as_spelled(said.ordering, schema.names),
        type=said.type or "cow",
        merge_mode=said.merge_mode or None,
        properties={**_spelling(schema, wanted.partition), **said.properties},
        storage_options=location.options,
    )


def _spelling(schema: pa.Schema, partition: Iterable[str]) -> dict[str, str]:
    """How the table spells partition columns that Hudi's front ends spell one way or another."""
    types = [schema.field(name).type for name in partition if name in schema.names]
    if any(pa.types.is_timestamp(one) and one.tz for one in types):
        return {TIMESTAMPS_KEY: TIMESTAMPS_AS_TEXT}
    return {}


def as_spelled(wanted: Iterable[str], names: Sequence[str]) -> list[str]:
    """Names of columns as the columns spell them: in SQL the case of letters does not matter."""
    spelled = {name.lower(): name for name in names}
    named = []
    for one in wanted:
        outer, dot, inner = one.partition(".")
        named.append(spelled.get(outer.lower(), outer) + dot + inner)
    return named


def table_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are a table's, by Hudi's long names; others are the catalog's."""
    named: dict[str, str] = {}
    for key, value in properties.items():
        if is_for_storage(key) or key == "path":
            continue
        long = SHORT_NAMES.get(key.lower(), key)
        if not long.startswith(_PREFIXES):
            _refuse_misspelt(key)
            continue
        if named.get(long, value) != value:
            raise InvalidRequest(
                "repeated_option",
                what=f"The statement sets {long} twice.",
                why=f"{key} is another name of this option.",
                now="Leave one of them out.",
            )
        named[long] = value
    return named


def _refuse_misspelt(key: str) -> None:
    """A property for the catalog only must not look like one of the table."""
    known = ("primaryKey", "orderingFields", "preCombineField", "recordMergeMode")
    nearest = difflib.get_close_matches(key.lower(), [name.lower() for name in known], cutoff=0.75)
    found = [name for name in known if name.lower() in nearest]
    if found or key.lower().startswith(("hoodi", "hodie", "lakew")):
        refuse_unknown([key], ALL_SETTINGS, known)


def _is_there(location: Location) -> bool:
    return open_storage(location).read_if_present(PROPERTIES_PATH) is not None


def _no_view(location: Location, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_property",
        what=f"{VIEW_KEY} names no view of {location.uri}.",
        why=f"{why} A merge-on-read table that is there can be seen with its logs or without.",
        now="Leave the property out, or give the location of such a table.",
        property=VIEW_KEY,
    )


def _taken(location: Location) -> InvalidRequest:
    return InvalidRequest(
        "table_exists",
        what=f"A table already exists at {location.uri}.",
        why="The statement would create another table there.",
        now="Choose another location, or register the table: leave out columns and AS.",
        path=location.uri,
    )


def _refuse_other(table: Table, wanted: Wanted) -> None:
    """A table that is registered with columns has to have just these."""
    own = [field for field in table.schema if field.name not in META_COLUMNS]
    there, asked = ddl(pa.schema(own)).split(", "), ddl(wanted.schema()).split(", ")
    fields = [field.name for field in table.config.partitions.fields]
    has_columns = asked == [""] or sorted(there) == sorted(asked)
    if has_columns and (not wanted.partitions or wanted.partition == fields):
        return
    raise InvalidRequest(
        "table_differs",
        what=f"The table at {wanted.path} differs from the statement.",
        why=f"It has {', '.join(there)}; its partition columns: {', '.join(fields) or 'none'}.",
        now="Leave out columns and partitions: the table has them.",
    )


Changes = Sequence[Mapping[str, object]]


def alter(table: Table, changes: Changes) -> None:
    """Make the changes; properties that only the catalog keeps are none of the table's."""
    columns = [_column(one) for one in changes if one["kind"] not in ("set", "unset")]
    if columns:
        table.write(altered_columns(list(_placed(columns, table))))
        return
    unset = [str(one["key"]) for one in changes if one["kind"] == "unset"]
    table.set_settings(
        table_properties(properties_in(changes)), tuple(table_properties(dict.fromkeys(unset, "")))
    )


def _placed(changes: Iterable[ColumnChange], table: Table) -> Iterator[ColumnChange]:
    """The changes; columns that come without a place stand before those of partitions, as in Hudi.

    A table that has them elsewhere keeps them there.
    """
    own = [name for name in table.schema.names if name not in META_COLUMNS]
    partitions = [field.name for field in table.config.partitions.fields]
    last = own[-len(partitions) - 1] if len(partitions) < len(own) else ""
    is_usual = bool(partitions) and own[-len(partitions) :] == partitions
    for change in changes:
        if change.adds and change.after is None and not change.parents and is_usual:
            yield replace(change, after=last)
            last = change.column
        else:
            yield change


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
