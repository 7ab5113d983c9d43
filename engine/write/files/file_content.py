"""File content: what the file-keyed indexes say of a data file, from its rows and its footer.

While a file is made its rows are looked at on their way, so that nothing is read twice; of a file
that is there already they are read back, only the columns that expressions are of.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.parquet_footer import KeyFooter, key_footer
from lakewarden.engine.metadata.entries.changes import NewFile, StoredFilter
from lakewarden.engine.metadata.entries.row_indexes import RowGatherer, RowIndexes
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.storage.port import Storage

_BATCH_ROWS = 1 << 16


def gatherer_of(indexes: RowIndexes) -> RowGatherer:
    """What looks at the rows of one new file."""
    return RowGatherer(indexes.expressions)


def with_gathered(
    file: NewFile, keys: KeyFooter, gathered: RowGatherer, indexes: RowIndexes, size: BloomOptions
) -> NewFile:
    """A base file with what was gathered from its rows while it was written."""
    return replace(
        file,
        key_filter=stored_filter(keys) if indexes.has_filters else None,
        expressions=gathered.summaries(file.size_bytes),
        expression_filters=gathered.filters(size),
    )


def with_base_content(
    storage: Storage, path: str, file: NewFile, indexes: RowIndexes, size: BloomOptions
) -> NewFile:
    """A base file that is there already with what its footer and its rows say."""
    if not indexes.has_filters and not indexes.expressions:
        return file
    gathered = gatherer_of(indexes)
    with BaseReader(storage).opened(path) as source:
        opened = pq.ParquetFile(source)
        if indexes.expressions:
            _look_at(opened, gathered, indexes)
        return with_gathered(file, key_footer(opened.metadata), gathered, indexes, size)


def with_log_content(file: NewFile, rows: pa.Table, indexes: RowIndexes) -> NewFile:
    """A log with the statistics of its records; it has no filters, and none if it only deletes."""
    gathered = RowGatherer([one for one in indexes.expressions if not one.is_filter])
    gathered.add(rows)
    return replace(file, expressions=gathered.summaries(file.size_bytes))


def stored_filter(keys: KeyFooter) -> StoredFilter | None:
    """The filter of a footer as it stands there; a file may have none."""
    if keys.bloom_text is None:
        return None
    return StoredFilter(keys.bloom_text, keys.bloom_type or "SIMPLE")


def _look_at(file: pq.ParquetFile, gathered: RowGatherer, indexes: RowIndexes) -> None:
    present = [name for name in indexes.expression_columns if name in file.schema_arrow.names]
    # Without any of the columns, one of the file's own still tells how many rows it has.
    names = present or file.schema_arrow.names[:1]
    for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
        gathered.add(pa.Table.from_batches([batch]))
