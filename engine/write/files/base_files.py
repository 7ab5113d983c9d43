"""Base files: Parquet as Java writes and reads it, with Hudi's keys in the footer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import KeyFooter
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH
from lakewarden.engine.write.files.key_footers import KeyGatherer
from lakewarden.engine.write.files.spec import FileOptions

EXTENSION = "parquet"
# Rows whose values tell whether a column repeats them, and how much they have to.
_SAMPLE_ROWS = 4096
_REPEATED_SHARE = 0.5
_CONSTANT_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
# Values that are encoded together: many, but of wide rows no more than fill a page.
_ENCODED_ROWS_MIN, _ENCODED_ROWS_MAX = 1 << 4, 1 << 14
_PAGE_BYTES = 1 << 20
# A row is found by reading its row group. Groups of so many rows take 1 % more space than files
# without any, and scans of them as long; those of fewer rows, or with few values for each of many
# columns, take longer.
_ROW_GROUP_ROWS_MIN, _ROW_GROUP_ROWS_MAX = 1 << 14, 1 << 18
_ROW_GROUP_ROWS_PER_COLUMN = 1 << 8
# Of wide rows a group has fewer, since a reader of one row has all of it in memory.
_ROW_GROUP_BYTES_MAX = 32 << 20


@dataclass(frozen=True, slots=True)
class BaseContent:
    """What a base file is made of: rows in parts, and how the table describes them."""

    schema: pa.Schema
    parts: Iterable[pa.Table]
    # The Avro schema of the records, with the meta columns.
    records_text: str


@dataclass(frozen=True, slots=True, eq=False)
class StoredFile:
    """A base file as it now stands in the storage."""

    size_bytes: int
    footer: pq.FileMetaData
    keys: KeyFooter


def store_base_file(
    storage: Storage, path: str, content: BaseContent, keys: KeyGatherer, options: FileOptions
) -> StoredFile:
    """Write a base file; it is visible as a whole, or not at all.

    The maker of the parts gathers the keys; they have to be complete after the last part.
    """
    footers: list[pq.FileMetaData] = []
    groups = _row_groups(content.parts, options)
    first = next(groups, None)
    schema = content.schema if first is None else first.schema
    with storage.create(path) as stream:
        with base_writer(stream, schema, first, options, footers) as writer:
            group, first = first, None
            while group is not None:
                writer.write_table(group, row_group_size=len(group))
                # What is written makes room before the next one is put together.
                group = None
                group = next(groups, None)
            of_keys = keys.footer()
            writer.add_key_value_metadata(footer_texts(of_keys, content.records_text))
        size_bytes = stream.tell()
    return StoredFile(size_bytes, footers[0], of_keys)


def row_group_rows(rows: pa.Table, options: FileOptions) -> int:
    """How many rows like these a row group has at most."""
    by_columns = max(_ROW_GROUP_ROWS_MIN, rows.num_columns * _ROW_GROUP_ROWS_PER_COLUMN)
    by_bytes = len(rows) * row_group_bytes(options) // max(rows.nbytes, 1)
    return int(max(min(by_columns, _ROW_GROUP_ROWS_MAX, by_bytes), 1))


def row_group_bytes(options: FileOptions) -> int:
    """How much memory the rows of a row group take at most."""
    return min(options.row_group_bytes, _ROW_GROUP_BYTES_MAX)


def base_writer(
    stream: pa.NativeFile,
    schema: pa.Schema,
    sample: pa.Table | None,
    options: FileOptions,
    footers: list[pq.FileMetaData] | None = None,
) -> pq.ParquetWriter:
    """A writer of rows like those of a sample; closing it adds the footer to a list."""
    return pq.ParquetWriter(
        stream,
        schema,
        compression=options.codec.upper() if options.codec != "uncompressed" else "NONE",
        compression_level=options.compression_level,
        use_dictionary=_repeating(sample, options) if options.uses_dictionaries else False,
        data_page_version="1.0",
        store_schema=False,
        metadata_collector=[] if footers is None else footers,
        write_batch_size=_encoded_rows(sample),
    )


def footer_texts(keys: KeyFooter, records_text: str) -> dict[str, str]:
    """What the footer of a base file keeps by key."""
    described = {"parquet.avro.schema": records_text, "writer.model.name": "avro"}
    return {**keys.key_values(), **described}


def _row_groups(parts: Iterable[pa.Table], options: FileOptions) -> Iterator[pa.Table]:
    """The rows in parts of the size of row groups, each but the last one filled."""
    waiting: list[pa.Table] = []
    rows = size = 0
    bytes_max = row_group_bytes(options)
    for part in parts:
        limit = row_group_rows(part, options)
        start = 0
        while start < len(part):
            piece = part.slice(start, max(limit - rows, 1))
            if waiting and (rows >= limit or size + piece.nbytes > bytes_max):
                yield _joined(waiting)
                rows = size = 0
                continue
            waiting.append(piece)
            rows, size, start = rows + len(piece), size + piece.nbytes, start + len(piece)
    if rows:
        yield _joined(waiting)


def _joined(pieces: list[pa.Table]) -> pa.Table:
    """The pieces as one; the list is empty afterwards, so that memory is freed early."""
    whole = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)
    pieces.clear()
    # A writer gives up a dictionary when another one comes within a row group.
    return whole.unify_dictionaries()


def _repeating(sample: pa.Table | None, options: FileOptions) -> list[str]:
    """The columns to keep as dictionaries: hashing values that hardly repeat is lost time."""
    if sample is None:
        return list(_CONSTANT_COLUMNS)
    head = sample.slice(0, _SAMPLE_ROWS)
    return [
        *_CONSTANT_COLUMNS,
        *(
            name
            for name in sample.column_names
            if name not in META_COLUMNS and _repeats(head.column(name))
        ),
    ]


def _encoded_rows(sample: pa.Table | None) -> int:
    """How many values of a column are encoded before the size of its page is looked at."""
    if not sample:
        return _ENCODED_ROWS_MIN
    by_bytes: int = len(sample) * _PAGE_BYTES // max(sample.nbytes, 1)
    # A page is no smaller than what is encoded together, and is read as a whole.
    widest: int = max(column.nbytes for column in sample.columns)
    in_a_page: int = max(len(sample) * _PAGE_BYTES // max(widest, 1), 1)
    return min(max(by_bytes, _ENCODED_ROWS_MIN), in_a_page, _ENCODED_ROWS_MAX)


def _repeats(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return True
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return False
    distinct = pc.count_distinct(column, mode="all").as_py()
    return bool(distinct <= len(column) * _REPEATED_SHARE)
