"""Evolution: the schema of a table after rows with other columns have come in.

Columns are added and widened, never dropped or narrowed. The Avro text keeps everything that does
not change, so that engines that compare texts see no change where there is none.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema, is_nullable, record_names
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import table_type, widened
from lakewarden.engine.table.schema import META_COLUMNS, TableSchema

MISSING_COLUMNS_KEY = "hoodie.write.set.null.for.missing.columns"
_SCHEMA_PATH = "the schema of the table"


def evolved(
    current: TableSchema,
    incoming: pa.Schema,
    *,
    allow_missing: bool,
    table_name: str,
    with_nulls: Collection[str] = (),
) -> TableSchema:
    """The table's schema for writing rows of an incoming one; refused by name if there is none.

    Columns that may not be null so far may from now on if they are among `with_nulls`.
    """
    fields = {field.name: field for field in incoming if field.name not in META_COLUMNS}
    _check_names(current, incoming)
    missing = [name for name in current.columns.names if name not in fields]
    if missing and not allow_missing:
        raise _missing(missing)
    columns = [
        field if field.name not in fields else _merged(field, fields.pop(field.name))
        for field in current.columns
    ]
    columns += [
        pa.field(field.name, table_type(field.type, field.name)) for field in fields.values()
    ]
    return _described(current, pa.schema(columns), {*with_nulls, *missing}, table_name)


def not_nullable(schema: TableSchema) -> frozenset[str]:
    """The columns that the table's Avro schema does not let be null."""
    if schema.avro_text is None:
        return frozenset()
    record = parse_schema(schema.avro_text, _SCHEMA_PATH)
    return frozenset(field.name for field in record.fields if not is_nullable(field.type))


def with_meta_text(schema: TableSchema) -> str:
    """The Avro text of the records in files: the meta columns in front."""
    assert schema.avro_text is not None
    record = json.loads(schema.avro_text)
    own = [field for field in record["fields"] if field["name"] not in META_COLUMNS]
    meta = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None}
        for name in META_COLUMNS
    ]
    return _dumped({**record, "fields": [*meta, *own]})


def _merged(field: pa.Field, incoming: pa.Field) -> pa.Field:
    if pa.types.is_null(incoming.type):
        return field
    type_ = widened(field.type, table_type(incoming.type, field.name), field.name)
    return field if type_ == field.type else field.with_type(type_)


def _described(
    current: TableSchema, columns: pa.Schema, with_nulls: set[str], table_name: str
) -> TableSchema:
    """The columns with their Avro text, which is the current one as far as nothing changes."""
    if current.avro_text is None:
        return TableSchema(columns, avro_schema(columns, *record_names(table_name)))
    record = json.loads(current.avro_text)
    has_meta = any(field["name"] in META_COLUMNS for field in record["fields"])
    relaxed = with_nulls & not_nullable(current)
    if columns.equals(current.columns) and not has_meta and not relaxed:
        return TableSchema(columns, current.avro_text)
    name, namespace = record["name"], record.get("namespace", "")
    known: Mapping[str, dict[str, object]] = {field["name"]: field for field in record["fields"]}
    fields = []
    for field in columns:
        place = current.columns.get_field_index(field.name)
        same = place >= 0 and current.columns.field(place).type == field.type
        if same and field.name not in relaxed:
            fields.append(known[field.name])
        else:
            fields.append(_nullable_field(field, known.get(field.name), name, namespace))
    return TableSchema(columns, _dumped({**record, "fields": fields}))


def _nullable_field(
    field: pa.Field, known: dict[str, object] | None, name: str, namespace: str
) -> dict[str, object]:
    described = json.loads(avro_schema(pa.schema([field]), name, namespace))["fields"][0]
    return {**(known or {}), **described}


def _dumped(record: object) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _check_names(current: TableSchema, incoming: pa.Schema) -> None:
    names = [name for name in incoming.names if name not in META_COLUMNS]
    if not names:
        raise InvalidRequest(
            "no_columns",
            what="The rows have no columns.",
            why="There is nothing to write.",
            now="Pass rows with at least the table's key columns.",
        )
    for clashing in _clashing(names):
        raise _ambiguous(clashing, "Two columns of the rows have the same name.")
    known = {name.lower(): name for name in current.columns.names}
    for name in names:
        if known.get(name.lower(), name) != name:
            raise _ambiguous(
                (name, known[name.lower()]),
                "The rows and the table spell a column differently, and Spark takes the two for"
                " the same.",
            )


def _clashing(names: Iterable[str]) -> list[tuple[str, ...]]:
    names = list(names)
    counts = Counter(name.lower() for name in names)
    if len(counts) == len(names):
        return []
    return [
        tuple(name for name in names if name.lower() == lowered)
        for lowered, count in counts.items()
        if count > 1
    ]


def _ambiguous(names: tuple[str, ...], why: str) -> InvalidRequest:
    return InvalidRequest(
        "ambiguous_column",
        what=f"Column names differ in nothing or in case only: {', '.join(names)}.",
        why=why,
        now="Rename the column of the rows.",
        columns=names,
    )


def _missing(names: list[str]) -> InvalidRequest:
    return InvalidRequest(
        "missing_columns",
        what=f"The rows lack columns of the table: {', '.join(names[:20])}.",
        why="Writing nulls in their place would overwrite the values of rows that are updated.",
        now=f"Add them, or set {MISSING_COLUMNS_KEY} to true if null is meant.",
        columns=tuple(names),
    )
