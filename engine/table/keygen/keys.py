"""Record keys: how the key columns of a row become its record key."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.table.column_types import column_at
from lakewarden.engine.table.keygen.java_text import Column, java_texts

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"


def key_texts(rows: pa.Table, fields: Sequence[str]) -> list[pa.Array]:
    """The texts that keys are made of, a column of them for each field."""
    return [_whole(java_texts(_plain(column_at(rows, name)), name)) for name in fields]


def joined_keys(
    texts: Sequence[pa.Array], fields: Sequence[str], *, names_fields: bool
) -> pa.Array:
    """The record key of each row: the value itself, or `name:value` for each field."""
    if not names_fields:
        return texts[0]
    parts: list[object] = []
    for at, (name, text) in enumerate(zip(fields, texts, strict=True)):
        parts += [f"{',' if at else ''}{name}:", _filled(text)]
    return pc.binary_join_element_wise(*parts, "")


def _filled(text: pa.Array) -> pa.Array:
    filled = pc.if_else(pc.equal(text, ""), EMPTY_PLACEHOLDER, text)
    return pc.fill_null(filled, NULL_PLACEHOLDER)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_kept = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_kept else column


def _whole(texts: Column) -> pa.Array:
    if isinstance(texts, pa.Array):
        return texts
    return texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
