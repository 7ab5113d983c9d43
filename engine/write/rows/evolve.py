"""Evolution: the schema of a table after rows with other columns have come in.

It stays as it is unless a caller asks; then columns are added, and widened for values that have no
place in them, never dropped or narrowed. The Avro text keeps everything that does not change, so
that engines that compare texts see no change where there is none.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema, is_nullable, record_names
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.spec import IS_DELETED_FIELD
from lakewarden.engine.table.column_types import (
    WIDER,
    WIDER_BY_TYPE,
    table_type,
    unknown_columns,
    widened,
)
from lakewarden.engine.table.schema import META_COLUMNS, TableSchema
from lakewarden.engine.write.rows.exact import Misfit, exact, plain

MISSING_COLUMNS_KEY = "hoodie.write.set.null.for.missing.columns"
_SCHEMA_PATH = "the schema of the table"


def evolved(
    current: TableSchema,
    incoming: pa.Schema,
    *,
    allow_missing: bool,
    table_name: str,
    with_nulls: Collection[str] = (),
    evolves: bool = False,
    rows: pa.Table | None = None,
) -> TableSchema:
    """The table's schema for writing rows of an incoming one; refused by name if there is none.

    Columns that may not be null so far may from now on if they are among `with_nulls`. Where the
    schema `evolves`, the rows decide which columns become wider, and their types if they are not
    here.
    """
    fields = {field.name: field for field in incoming if field.name not in META_COLUMNS}
    _check_names(current, incoming)
    missing = [name for name in current.columns.names if name not in fields]
    if missing and not allow_missing:
        raise _missing(missing)
    merging = _Merging(evolves, rows)
    columns = [
        field if field.name not in fields else merging.merged(field, fields.pop(field.name))
        for field in current.columns
    ]
    # The first rows of a table without a schema give it one.
    unknown = [name for name in fields if name != IS_DELETED_FIELD]
    if unknown and columns and not evolves:
        raise unknown_columns(unknown, current.columns.names)
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


def columns_added(before: TableSchema, after: TableSchema) -> tuple[str, ...]:
    """The columns that a write has added."""
    return tuple(name for name in after.columns.names if name not in before.columns.names)


def columns_widened(before: TableSchema, after: TableSchema) -> tuple[str, ...]:
    """The columns whose type a write has changed."""
    types = {field.name: field.type for field in before.columns}
    return tuple(
        field.name for field in after.columns if types.get(field.name, field.type) != field.type
    )


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


@dataclass(frozen=True, slots=True)
class _Merging:
    """How the type of a column follows from that of the table and that of the rows."""

    evolves: bool
    rows: pa.Table | None

    def merged(self, field: pa.Field, incoming: pa.Field) -> pa.Field:
        if pa.types.is_null(incoming.type):
            return field
        own = table_type(incoming.type, field.name)
        kept = widened(field.type, own, field.name, adds=self.evolves)
        if self.evolves and own != kept:
            by_type = self.rows is None
            grown = widened(
                field.type,
                own,
                field.name,
                wider=WIDER_BY_TYPE if by_type else WIDER,
                adds=True,
            )
            if grown != kept and (by_type or not self._fits(field.name, kept)):
                kept = grown
        return field if kept == field.type else field.with_type(kept)

    def _fits(self, name: str, type_: pa.DataType) -> bool:
        assert self.rows is not None
        try:
            exact(plain(self.rows.column(name), name), type_)
        except Misfit:
            return False
        return True


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
            why="A write needs rows with columns.",
            now="Pass rows with at least the table's key columns.",
        )
    for clashing in _clashing(names):
        raise _ambiguous(clashing, "Two columns of the rows have the same name.")
    known = {name.lower(): name for name in current.columns.names}
    for name in names:
        if known.get(name.lower(), name) != name:
            raise _ambiguous(
                (name, known[name.lower()]),
                (
                    "The rows and the table spell a column differently, and Spark treats both "
                    "names as one."
                ),
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
        what=f"Column names are equal, or differ only in case: {', '.join(names)}.",
        why=why,
        now="Rename the column of the rows.",
        columns=names,
    )


def _missing(names: list[str]) -> InvalidRequest:
    return InvalidRequest(
        "missing_columns",
        what=f"The rows lack these columns of the table: {', '.join(names[:20])}.",
        why="Nulls in their place would overwrite values of existing rows.",
        now=f"Add them, or set {MISSING_COLUMNS_KEY} to true to write nulls.",
        columns=tuple(names),
    )
