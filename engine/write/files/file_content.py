"""File content: what the file-keyed indexes say of a data file, from its rows and its footer.

While a file is made its rows are looked at on their way, so that nothing is read twice; of a file
that is there already they are read back, only the columns that expressions are of.

Key footers: what a base file's footer says of its keys, gathered while the file is written.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.bloom import (
    BloomFilter,
    BloomOptions,
    build_bloom,
    extend_bloom,
    full_bloom,
)
from lakewarden.engine.formats.parquet_footer import KeyFooter, key_footer
from lakewarden.engine.metadata.entries.changes import NewFile, StoredFilter
from lakewarden.engine.metadata.entries.row_indexes import RowGatherer, RowIndexes
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.storage.port import Storage

# A filter of so many times the keys it can grow to answers "maybe" to nearly every stranger.
_SATURATED_AT = 8
# Up to so many keys a new filter costs next to nothing, and forgets keys that are gone.
REBUILT_UP_TO = 200_000
# From U+E000 on Java's order, that of UTF-16, is another one than that of UTF-8.
_FIRST_UNLIKE_OCTET = 0xEE


@dataclass(frozen=True, slots=True)
class KeptFilter:
    """The filter in the footer of a file that is rewritten; it is decoded only to be changed."""

    footer: KeyFooter
    path: str

    def decoded(self) -> BloomFilter:
        bloom = self.footer.bloom_filter(self.path)
        assert bloom is not None
        return bloom


class KeyGatherer:
    """Gathers the keys of one base file; without options its footer is to say nothing of them.

    `base` is the filter of the file that is rewritten: keys that stay need not be hashed again. It
    may come later, but not after the first keys.
    """

    def __init__(self, options: BloomOptions | None, base: KeptFilter | None = None) -> None:
        self._options = options
        self._base = base
        self._keys: list[pa.Array] = []
        self._bounds: list[str] = []

    def go_on_from(self, base: KeptFilter) -> None:
        assert not self._bounds
        self._base = base

    def add(self, keys: pa.Array | pa.ChunkedArray, *, are_new: bool) -> None:
        """Take note of keys, in the order in which they are written."""
        if self._options is None:
            return
        chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        for chunk in chunks:
            if len(chunk):
                self._bounds += key_bounds(chunk)
                if are_new or self._base is None:
                    self._keys.append(chunk)

    def footer(self) -> KeyFooter:
        """What goes into the footer; a file without rows has no smallest and largest key."""
        if self._options is None:
            return KeyFooter(None, None, None, None)
        bounds = sorted(self._bounds, key=_java_order)
        low, high = (bounds[0], bounds[-1]) if bounds else (None, None)
        if self._base is not None and not self._keys:
            return replace(self._base.footer, min_key=low, max_key=high)
        bloom = self._bloom(self._options)
        return KeyFooter(bloom.text(), bloom.type_code, low, high)

    def _bloom(self, options: BloomOptions) -> BloomFilter:
        keys = pa.chunked_array(self._keys, pa.string())
        if self._base is not None:
            return extend_bloom(self._base.decoded(), keys, entries_max=options.entries_max)
        capacity = max(options.entries, options.entries_max)
        if options.type_code == "DYNAMIC_V0" and len(keys) > _SATURATED_AT * capacity:
            return full_bloom(
                len(keys),
                entries=options.entries,
                false_positive_rate=options.false_positive_rate,
                entries_max=options.entries_max,
            )
        return build_bloom(
            keys,
            type_code=options.type_code,
            entries=options.entries_for(len(keys)),
            false_positive_rate=options.false_positive_rate,
            entries_max=options.entries_max,
        )


def key_bounds(keys: pa.Array) -> tuple[str, str]:
    """The smallest and the largest of some keys, by Java's order."""
    if _may_be_unlike(keys):
        texts = sorted(set(keys.to_pylist()), key=_java_order)
        return texts[0], texts[-1]
    bounds = pc.min_max(keys)
    return bounds["min"].as_py(), bounds["max"].as_py()


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _may_be_unlike(keys: pa.Array) -> bool:
    _, offsets, content = keys.buffers()
    if content is None:
        return False
    bounds = np.frombuffer(offsets, np.int32)
    first, last = bounds[keys.offset], bounds[keys.offset + len(keys)]
    octets = np.frombuffer(content, np.uint8)[first:last]
    return bool(len(octets)) and int(octets.max()) >= _FIRST_UNLIKE_OCTET


_BATCH_ROWS = 1 << 16


def gatherer_of(indexes: RowIndexes, size: BloomOptions) -> RowGatherer:
    """What looks at the rows of one new file."""
    return RowGatherer(indexes.expressions, size)


def with_gathered(
    file: NewFile, keys: KeyFooter, gathered: RowGatherer, indexes: RowIndexes
) -> NewFile:
    """A base file with what was gathered from its rows while it was written."""
    return replace(
        file,
        key_filter=stored_filter(keys) if indexes.has_filters else None,
        expressions=gathered.summaries(file.size_bytes),
        expression_filters=gathered.filters(),
    )


def with_base_content(
    storage: Storage, path: str, file: NewFile, indexes: RowIndexes, size: BloomOptions
) -> NewFile:
    """A base file that is there already with what its footer and its rows say."""
    if not indexes.has_filters and not indexes.expressions:
        return file
    gathered = gatherer_of(indexes, size)
    with BaseReader(storage).opened(path) as source:
        opened = pq.ParquetFile(source)
        if indexes.expressions:
            _look_at(opened, gathered, indexes)
        return with_gathered(file, key_footer(opened.metadata), gathered, indexes)


def with_log_content(file: NewFile, rows: pa.Table, indexes: RowIndexes) -> NewFile:
    """A log with the statistics of its records; it has no filters, and none if it only deletes."""
    statistics = [one for one in indexes.expressions if not one.is_filter]
    gathered = RowGatherer(statistics, BloomOptions())
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
