"""Creating: CREATE TABLE as the engine's creation of a table, or a look at the one there is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.types import ddl
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import PROPERTIES_PATH
from lakewarden.engine.table.schema import META_COLUMNS
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.source_writer import KEY, MERGE_MODE, ORDERING, TYPE, arrow_columns
from lakewarden.sql_ext.tables.reading import location_of
from lakewarden.storage_options import is_for_storage
from lakewarden.table import Table

# What Hudi's users write into TBLPROPERTIES, besides its own long names.
_NAMES = {
    "primarykey": KEY[0],
    "orderingfields": ORDERING[0],
    "precombinefield": ORDERING[0],
    "type": TYPE[0],
    "recordmergemode": MERGE_MODE[0],
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement says of a table; the columns are in Spark's JSON."""

    path: str
    name: str
    columns: str
    partitions: Sequence[str]
    properties: Mapping[str, str]

    @property
    def location(self) -> Location:
        return location_of(self.path, self.properties)

    def schema(self) -> pa.Schema:
        return arrow_columns(StructType.fromJson(json.loads(self.columns)))


def create(wanted: Wanted, permissions: Permissions, *, must_be_new: bool) -> dict[str, object]:
    """Create a table if there is none; its columns and partitions as they are then."""
    location = wanted.location
    if _is_there(location):
        if must_be_new:
            raise _taken(location)
        table = Table(location.uri, location.options)
        _refuse_other(table, wanted)
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
    given = _named(wanted.properties)
    return Table.create(
        location.uri,
        schema,
        key=_list(given, KEY),
        partition=wanted.partitions,
        ordering=_list(given, ORDERING),
        type=_first(given, TYPE) or "cow",
        merge_mode=_first(given, MERGE_MODE) or None,
        properties={"hoodie.table.name": wanted.name, **_others(given)},
        storage_options=location.options,
    )


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are not about the place, by Hudi's long names."""
    named: dict[str, str] = {}
    for key, value in properties.items():
        if is_for_storage(key) or key == "path":
            continue
        long = _NAMES.get(key.lower(), key)
        if named.get(long, value) != value:
            raise InvalidRequest(
                "repeated_option",
                what=f"The statement sets {long} twice.",
                why=f"{key} is another name of this option.",
                now="Leave one of them out.",
            )
        named[long] = value
    return named


def _first(given: Mapping[str, str], names: Sequence[str]) -> str:
    return next((given[name] for name in names if name in given), "")


def _list(given: Mapping[str, str], names: Sequence[str]) -> list[str]:
    return [name.strip() for name in _first(given, names).split(",") if name.strip()]


def _others(given: Mapping[str, str]) -> dict[str, str]:
    """What is neither key nor type: the engine knows it, or refuses it by name."""
    described = {*KEY, *ORDERING, *TYPE, *MERGE_MODE}
    return {key: value for key, value in given.items() if key not in described}


def _is_there(location: Location) -> bool:
    return open_storage(location).read_if_present(PROPERTIES_PATH) is not None


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
    if has_columns and (not wanted.partitions or list(wanted.partitions) == fields):
        return
    raise InvalidRequest(
        "table_differs",
        what=f"The table at {wanted.path} differs from the statement.",
        why=f"It has {', '.join(there)}; its partition columns: {', '.join(fields) or 'none'}.",
        now="Leave out columns and partitions: the table has them.",
    )
