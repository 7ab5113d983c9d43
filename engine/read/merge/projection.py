"""Projection: rows as a file holds them, made into rows as the table's schema wants them.

Columns are found by name; missing ones are null, narrower types are widened, nested ones follow the
same rules inside.
"""

import pyarrow as pa

from lakewarden.engine.formats.widening import widen_stored, with_names
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.table.schema_history import AS_STORED, Sources


def project(
    rows: pa.Table,
    target: pa.Schema,
    path: str,
    sources: Sources = AS_STORED,
    *,
    keep_dictionaries: bool = False,
) -> pa.Table:
    """The rows in the target schema; `sources` tells where the file has the columns.

    Columns of dictionaries are written out, unless they may stay.
    """
    if not sources and rows.schema.equals(target):
        return rows
    if keep_dictionaries:
        target = pa.schema([_as_kept(rows, field, sources.of(field.name)) for field in target])
    columns = [_column(rows, field, sources, path) for field in target]
    return pa.table(columns, schema=target)


def _as_kept(rows: pa.Table, field: pa.Field, source: str | None) -> pa.Field:
    """The field as a dictionary if the rows have one of its values."""
    if source is None or source not in rows.schema.names:
        return field
    type_ = rows.schema.field(source).type
    is_kept = pa.types.is_dictionary(type_) and type_.value_type == field.type
    return field.with_type(type_) if is_kept else field


def _column(rows: pa.Table, field: pa.Field, sources: Sources, path: str) -> pa.ChunkedArray:
    source = sources.of(field.name)
    if source is None or source not in rows.schema.names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    column = rows.column(source)
    inside = sources.inside.get(field.name)
    if inside is not None:
        column = with_names(column, inside.renamed(column.type))
    if column.type == field.type:
        return column
    try:
        chunks = [widen_stored(chunk, field.type) for chunk in column.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptTable(
            "unreadable_column",
            what=f"Lakewarden cannot read column {field.name!r} of {path} as {field.type}.",
            why=f"The file holds {column.type}: {str(error).splitlines()[0]}.",
            now="Check recent writes: this file does not match the table's schema.",
            path=path,
            column=field.name,
        ) from None
    return pa.chunked_array(chunks, type=field.type)
