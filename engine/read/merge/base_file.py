"""Base files: Parquet read in whole or in batches, skipping row groups that cannot match."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage

# Java writes one or two huge row groups a file; a small buffer streams inside a row group.
STREAM_BUFFER_BYTES = 1 << 20

# A text that is no dictionary's is stored behind its length.
PLAIN_TEXT_BYTES_MIN = 4

RowFilter = tuple[pc.Expression, pa.Schema]
OnFooter = Callable[[pq.FileMetaData], None]


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
        keep_dictionaries: bool = False,
        small_buffers: bool = False,
        on_footer: OnFooter | None = None,
    ) -> Iterator[pa.Table]:
        """The wanted columns that the file has: one table, or one for each batch of rows.

        Texts that the file keeps as dictionaries can be left so: that is cheaper where rows are
        yet to be dropped. Small buffers spare memory, and ask the storage more often. Who wants
        the footer as well gets it before the first rows.
        """
        with self.opened(path) as source:
            # What is fetched in advance stays in memory until the last row has been read.
            options: dict[str, object] = {"pre_buffer": batch_rows is None}
            if small_buffers:
                options = {"pre_buffer": False, "buffer_size": STREAM_BUFFER_BYTES}
            file = pq.ParquetFile(source, **options)
            if on_footer is not None:
                on_footer(file.metadata)
            # Each look at the schema makes it anew, from all columns.
            stored = frozenset(file.schema_arrow.names)
            present = [name for name in columns if name in stored]
            if keep_dictionaries:
                options |= {"metadata": file.metadata, "read_dictionary": _repeated_texts(file)}
                file = pq.ParquetFile(source, **options)
            groups = _matching_groups(file, source, row_filter)
            if batch_rows is None:
                yield file.read_row_groups(groups, present, use_threads=use_threads)
                return
            for batch in file.iter_batches(batch_rows, groups, present, use_threads=use_threads):
                yield pa.Table.from_batches([batch])

    def metadata(self, path: str) -> pq.FileMetaData:
        """What the footer of a base file says."""
        with self.opened(path) as source:
            return pq.ParquetFile(source).metadata

    def count_row_groups(self, path: str, row_filter: RowFilter | None) -> tuple[int, int]:
        """How many row groups a read touches, and how many there are."""
        with self.opened(path) as source:
            file = pq.ParquetFile(source)
            return len(_matching_groups(file, source, row_filter)), file.num_row_groups

    @contextmanager
    def opened(self, path: str) -> Iterator[pa.NativeFile]:
        """The file itself; Arrow's errors about its bytes are raised as errors of a broken file."""
        try:
            with self._storage.open(path) as source:
                small = source.size() <= STREAM_BUFFER_BYTES
                # One request for everything is quicker than one for the footer and each column.
                yield pa.BufferReader(source.read_buffer()) if small else source
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise corrupt(path, None, f"It is no readable Parquet file: {reason}.") from None


def _repeated_texts(file: pq.ParquetFile) -> list[str]:
    """The text columns that are stored as dictionaries in the first row group.

    A writer falls back to plain pages when a dictionary grows too large, which no field tells; but
    a plain text takes more than the bytes of its length.
    """
    if not file.num_row_groups:
        return []
    group = file.metadata.row_group(0)
    texts = {field.name for field in file.schema_arrow if pa.types.is_string(field.type)}
    chunks = (group.column(number) for number in range(group.num_columns))
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.path_in_schema in texts
        and chunk.total_uncompressed_size < PLAIN_TEXT_BYTES_MIN * chunk.num_values
    ]


def _matching_groups(
    file: pq.ParquetFile, source: pa.NativeFile, filter_: RowFilter | None
) -> list[int]:
    """The row groups whose statistics allow a match."""
    everything = list(range(file.num_row_groups))
    if filter_ is None or not everything:
        return everything
    expression, schema = filter_
    stored = file.schema_arrow
    has_evolved = any(
        stored.field(name).type != schema.field(name).type
        for name in stored.names
        if name in schema.names
    )
    if has_evolved:
        return everything
    fragment = ds.ParquetFileFormat().make_fragment(source)
    return [group.id for group in fragment.subset(expression, schema=schema).row_groups]
