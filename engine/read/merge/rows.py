"""Rows of several reads as one table."""

from collections.abc import Iterable

import pyarrow as pa


def side_by_side(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """All rows in one table; without columns, a table still knows how many rows it has."""
    tables = list(parts)
    if len(schema):
        return pa.concat_tables([schema.empty_table(), *tables])
    count = sum(len(table) for table in tables)
    return pa.table({"": pa.nulls(count)}).select([])
