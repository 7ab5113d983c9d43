"""Record keys: how the key columns of a row become its record key.

Only tables without meta columns need this for reading; the others store the key in each row.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"


def record_keys(rows: pa.Table, fields: Sequence[str], *, composite: bool) -> pa.ChunkedArray:
    """The record key of each row: the value itself, or `name:value` pairs for composite keys."""
    if not composite:
        return _text(rows.column(fields[0]))
    parts = [
        pc.binary_join_element_wise(f"{name}:", _placeholders(_text(rows.column(name))), "")
        for name in fields
    ]
    return pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0]


def is_composite(fields: Sequence[str]) -> bool:
    """Whether keys are spelled as pairs; a single field under COMPLEX is a plain value.

    Releases differ for COMPLEX with one field; the plain value is what 1.x writes.
    """
    return len(fields) > 1


def _placeholders(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    filled = pc.if_else(pc.equal(texts, ""), EMPTY_PLACEHOLDER, texts)
    return pc.fill_null(filled, NULL_PLACEHOLDER)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_string(type_):
        return column
    if pa.types.is_boolean(type_):
        return pc.if_else(column, "true", "false")
    if pa.types.is_integer(type_) or pa.types.is_large_string(type_):
        return column.cast(pa.string())
    if pa.types.is_date32(type_):
        # Java writes a date key as the number of days since 1970.
        return column.cast(pa.int32()).cast(pa.string())
    raise InvalidRequest(
        "unsupported_key_type",
        what=f"Lakewarden cannot rebuild record keys of type {type_}.",
        why=(
            "The table stores no keys (hoodie.populate.meta.fields=false), and Hudi's "
            "releases spell such values differently."
        ),
        now="Read it with mode='read_optimized', or with the engine that wrote it.",
    )
