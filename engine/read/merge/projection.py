"""Projection: rows as a file holds them, made into rows as the table's schema wants them.

Columns are found by name; missing ones are null, narrower types are widened, nested ones follow the
same rules inside.
"""

from collections.abc import Mapping

import pyarrow as pa

from lakewarden.engine.formats.widening import widen_stored
from lakewarden.engine.kernel.errors import CorruptTable


def project(
    rows: pa.Table,
    target: pa.Schema,
    path: str,
    renamed: Mapping[str, str | None] | None = None,
    *,
    keep_dictionaries: bool = False,
) -> pa.Table:
    """The rows in the target schema; `renamed` gives the file's name of a column it calls else.

    Columns of dictionaries are written out, unless they may stay.
    """
    if rows.schema.equals(target):
        return rows
    source_names = renamed or {}
    sources = [source_names.get(field.name, field.name) for field in target]
    if keep_dictionaries:
        kept = [_as_kept(rows, *pair) for pair in zip(target, sources, strict=True)]
        target = pa.schema(kept)
    columns = [
        _column(rows, field, source, path) for field, source in zip(target, sources, strict=True)
    ]
    return pa.table(columns, schema=target)


def _as_kept(rows: pa.Table, field: pa.Field, source: str | None) -> pa.Field:
    """The field as a dictionary if the rows have one of its values."""
    if source is None or source not in rows.schema.names:
        return field
    type_ = rows.schema.field(source).type
    is_kept = pa.types.is_dictionary(type_) and type_.value_type == field.type
    return field.with_type(type_) if is_kept else field


def _column(rows: pa.Table, field: pa.Field, source: str | None, path: str) -> pa.ChunkedArray:
    if source is None or source not in rows.schema.names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    column = rows.column(source)
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
