"""Base files: Parquet read in whole or in batches, skipping row groups that cannot match."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage

# Java writes one or two huge row groups a file; a small buffer streams inside a row group.
STREAM_BUFFER_BYTES = 1 << 20

RowFilter = tuple[pc.Expression, pa.Schema]


class BaseReader:
    """Reads Parquet base files of one storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def tables(
        self,
        path: str,
        columns: Sequence[str],
        *,
        batch_rows: int | None = None,
        use_threads: bool = False,
        row_filter: RowFilter | None = None,
    ) -> Iterator[pa.Table]:
        """The wanted columns that the file has: one table, or one for each batch of rows."""
        try:
            with self._storage.open(path) as source:
                file = self._open(source, streaming=batch_rows is not None)
                present = [name for name in columns if name in file.schema_arrow.names]
                groups = list(range(file.num_row_groups))
                if row_filter is not None:
                    groups = _matching_groups(file, source, row_filter)
                if batch_rows is None:
                    yield file.read_row_groups(groups, present, use_threads=use_threads)
                    return
                for batch in file.iter_batches(batch_rows, groups, present, use_threads=False):
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise corrupt(path, None, f"It is no readable Parquet file: {reason}.") from None

    def _open(self, source: pa.NativeFile, *, streaming: bool) -> pq.ParquetFile:
        if streaming:
            return pq.ParquetFile(source, buffer_size=STREAM_BUFFER_BYTES, pre_buffer=False)
        return pq.ParquetFile(source)


def _matching_groups(file: pq.ParquetFile, source: pa.NativeFile, filter_: RowFilter) -> list[int]:
    """The row groups whose statistics allow a match."""
    expression, schema = filter_
    stored = file.schema_arrow
    evolved = any(
        stored.field(name).type != schema.field(name).type
        for name in stored.names
        if name in schema.names
    )
    if evolved or file.num_row_groups == 0:
        return list(range(file.num_row_groups))
    fragment = ds.ParquetFileFormat().make_fragment(source)
    return [group.id for group in fragment.subset(expression, schema=schema).row_groups]
