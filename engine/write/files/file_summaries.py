"""Summaries of a base file's columns: from its footer, or from its rows where it does not tell."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import column_ranges
from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.entries.summaries import (
    columns_with_nan,
    summaries_of_footer,
    summaries_of_rows,
)
from lakewarden.engine.storage.port import Storage


class NanWatch:
    """Looks at rows on their way into a file: a footer does not tell that a column has a NaN."""

    def __init__(self) -> None:
        self.columns: set[str] = set()

    def over(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same parts, each looked at when it is taken."""
        for part in parts:
            self.columns |= columns_with_nan(part)
            yield part


def base_file_summaries(
    storage: Storage,
    path: str,
    footer: pq.FileMetaData,
    columns: tuple[str, ...],
    with_nan: Iterable[str],
) -> dict[str, ColumnSummary]:
    """The summaries of a new base file; very long values have to be read back."""
    found = summaries_of_footer(footer, columns, with_nan=frozenset(with_nan))
    names = footer.schema.to_arrow_schema().names
    missing = [name for name in columns if name in names and name not in found]
    if not missing or not footer.num_rows:
        return found
    sizes = {one.name: (one.packed_bytes, one.unpacked_bytes) for one in column_ranges(footer)}
    with storage.open(path) as source:
        rows = pq.ParquetFile(source).read(missing)
    for name, summary in summaries_of_rows(rows, missing).items():
        packed, unpacked = sizes.get(name, (0, 0))
        found[name] = replace(summary, packed_bytes=packed, unpacked_bytes=unpacked)
    return found
