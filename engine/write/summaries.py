"""Summaries of columns for the metadata table."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import column_ranges
from lakewarden.engine.metadata.changes import ColumnSummary


def summaries_of_rows(rows: pa.Table, columns: Sequence[str]) -> Mapping[str, ColumnSummary]:
    found = {}
    for name in columns:
        column = rows.column(name)
        if pa.types.is_nested(column.type):
            continue
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        bounds = pc.min_max(column)
        low, high = bounds["min"], bounds["max"]
        found[name] = ColumnSummary(
            low if low.is_valid else None,
            high if high.is_valid else None,
            len(column),
            column.null_count,
        )
    return found


def summaries_of_footer(
    metadata: pq.FileMetaData, columns: Sequence[str]
) -> Mapping[str, ColumnSummary]:
    wanted = set(columns)
    return {
        one.name: ColumnSummary(
            one.minimum,
            one.maximum,
            one.value_count,
            one.null_count or 0,
            one.packed_bytes,
            one.unpacked_bytes,
        )
        for one in column_ranges(metadata)
        if one.name in wanted and one.value_count
    }
