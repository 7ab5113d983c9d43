"""Base files: Parquet read in whole or in batches, skipping what cannot match.

Row groups are skipped by their statistics, and then by the columns that choose rows: these are read
first, the others only for row groups that have such a row.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import key_footer_of
from lakewarden.engine.kernel.errors import LakewardenError, corrupt
from lakewarden.engine.read.merge.key_index import (
    KEY_PLACES,
    HashedKeys,
    Hashes,
    Positions,
    hashes_of,
)
from lakewarden.engine.storage.port import Storage

# Java writes one or two huge row groups a file; a small buffer streams inside a row group.
STREAM_BUFFER_BYTES = 1 << 20

# What a batch may take, whatever rows it could have: a few rows of documents fill the memory.
BATCH_BYTES_MAX = 16 << 20

# A text that is no dictionary's is stored behind its length.
PLAIN_TEXT_BYTES_MIN = 4

RowFilter = tuple[pc.Expression, pa.Schema]
OnFooter = Callable[[pq.FileMetaData], None]

# With more wanted keys than these for each row group nearly all of them have one.
_KEYS_PER_GROUP_MAX = 4
# With more wanted keys than one for so many rows, comparing all rows with them costs no more.
_ROWS_PER_KEY_MIN = 16
_KEYS_TOGETHER = 1 << 16
# What a part of the other columns may take while the chosen rows are taken out of it.
_PART_BYTES = 8 << 20
# Of the texts of a footer so many bytes at each end tell it from others.
_TOLD_BYTES = 8 << 10


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows of a file are wanted, as some of its columns tell."""

    columns: tuple[str, ...]
    # The positions of the wanted rows among those of a table of the columns, ascending.
    positions: Callable[[pa.Table], np.ndarray]
    # The keys that the only column has to have one of; None where something else decides.
    keys: HashedKeys | None = None


@dataclass(frozen=True, slots=True)
class _Steps:
    """How the chosen rows of a file are read."""

    row_filter: RowFilter | None
    one_by_one: bool
    use_threads: bool


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
        batch_bytes: int = BATCH_BYTES_MAX,
        use_threads: bool = False,
        row_filter: RowFilter | None = None,
        choice: RowChoice | None = None,
        keep_dictionaries: bool = False,
        small_buffers: bool = False,
        on_footer: OnFooter | None = None,
    ) -> Iterator[pa.Table]:
        """The wanted columns that the file has: one table, or one for each batch of rows.

        Texts that the file keeps as dictionaries can be left so: that is cheaper where rows are
        yet to be dropped. Rows that are not chosen are skipped. Small buffers spare memory, and
        ask the storage more often. Who wants the footer as well gets it before the first rows.
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
            has_choice = choice is not None and stored.issuperset(choice.columns)
            if (keep_dictionaries or has_choice) and (texts := _repeated_texts(file)):
                # Where most rows are dropped, their texts are not worth writing out.
                options |= {"metadata": file.metadata, "read_dictionary": texts}
                file = pq.ParquetFile(source, **options)
            if choice is not None and has_choice:
                steps = _Steps(row_filter, batch_rows is not None, use_threads)
                yield from self._chosen(file, source, path, present, choice, steps)
                return
            groups = _matching_groups(file, source, row_filter)
            if batch_rows is None:
                yield file.read_row_groups(groups, present, use_threads=use_threads)
                return
            step_rows = _rows_within(batch_bytes, batch_rows, file.metadata, groups, present)
            for batch in file.iter_batches(step_rows, groups, present, use_threads=use_threads):
                yield pa.Table.from_batches([batch])

    def _chosen(
        self,
        file: pq.ParquetFile,
        source: pa.NativeFile,
        path: str,
        columns: Sequence[str],
        choice: RowChoice,
        steps: "_Steps",
    ) -> Iterator[pa.Table]:
        """The chosen rows: one table, or one for each row group."""
        places = self._places(file, path, choice)
        if places is None:
            groups = _matching_groups(file, source, steps.row_filter)
        else:
            groups = _groups_of(file, places)
        keep = None
        if places is None and choice.keys is not None and len(groups) == file.num_row_groups:
            keep = partial(_kept, self._identity(file, path))
        chosen = partial(_chosen_rows, file, columns, choice, places, use_threads=steps.use_threads)
        if not steps.one_by_one:
            yield from chosen(groups, keep=keep)
            return
        for group in groups:
            yield from chosen([group])

    def _places(self, file: pq.ParquetFile, path: str, choice: RowChoice) -> Positions | None:
        """The rows of the file that can have one of the wanted keys; None where any may.

        The bloom filter may rule a file out before its keys are read for the first time.
        """
        keys, footer = choice.keys, file.metadata
        if keys is None or len(keys) * _ROWS_PER_KEY_MIN > footer.num_rows:
            return None
        identity = self._identity(file, path)
        hashes = KEY_PLACES.get(identity)
        if hashes is not None:
            return keys.places(hashes)
        if _are_ruled_out(keys.keys, footer.metadata or {}, path):
            return np.zeros(0, np.int64)
        if file.num_row_groups < 2 or len(keys) > file.num_row_groups * _KEYS_PER_GROUP_MAX:
            return None
        batches = file.iter_batches(_KEYS_TOGETHER, columns=choice.columns, use_threads=False)
        hashes = _kept(identity, (batch.column(0) for batch in batches))
        return keys.places(hashes)

    def _identity(self, file: pq.ParquetFile, path: str) -> Hashable:
        """What tells a file from any other one that may come to its path."""
        footer = file.metadata
        # Bloom filters of different keys differ everywhere, and are long.
        texts = hash(
            frozenset(
                (name, len(text), text[:_TOLD_BYTES], text[-_TOLD_BYTES:])
                for name, text in (footer.metadata or {}).items()
            )
        )
        return self._storage.uri(path), footer.num_rows, footer.serialized_size, texts

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


def _are_ruled_out(keys: pa.Array, texts: Mapping[bytes, bytes], path: str) -> bool:
    """Whether the bloom filter of a footer has none of some keys."""
    try:
        bloom = key_footer_of(texts).bloom_filter(path)
    except LakewardenError:
        # A filter of a kind that is not known, or that is broken, rules nothing out.
        return False
    return bloom is not None and not np.any(bloom.might_contain(keys))


def _kept(identity: Hashable, keys: Iterable[pa.Array]) -> Hashes:
    """The hashes of all keys of a file, kept for the next look."""
    hashes = hashes_of(keys)
    KEY_PLACES.keep(identity, hashes, hashes.nbytes)
    return hashes


def _chosen_rows(
    file: pq.ParquetFile,
    columns: Sequence[str],
    choice: RowChoice,
    places: Positions | None,
    groups: list[int],
    *,
    use_threads: bool,
    keep: Callable[[Iterable[pa.Array]], object] | None = None,
) -> Iterator[pa.Table]:
    """The chosen rows of some row groups: one table, or none.

    Only rows at the places, if there are any, are looked at; all keys are handed on to be kept.
    """
    if not groups:
        return
    first = file.read_row_groups(groups, choice.columns, use_threads=use_threads)
    if keep is not None:
        keep(first.column(0).chunks)
    if places is None:
        positions = choice.positions(first)
    else:
        near = _inside(file, groups, places)
        positions = near[choice.positions(first.take(pa.array(near)))]
    if not len(positions):
        return
    rows = first.take(pa.array(positions))
    others = [name for name in columns if name not in choice.columns]
    if others:
        groups, positions = _hit(file, groups, positions)
        rest = _taken(file, groups, others, positions, use_threads=use_threads)
        fields = [
            (first if name in choice.columns else rest).schema.field(name) for name in columns
        ]
        found = [(rows if name in choice.columns else rest).column(name) for name in columns]
        rows = pa.table(found, schema=pa.schema(fields))
    yield rows.select(columns)


def _ends(file: pq.ParquetFile, groups: Iterable[int]) -> Positions:
    """Where each of some row groups ends, if they lie behind each other."""
    return np.cumsum([file.metadata.row_group(group).num_rows for group in groups], dtype=np.int64)


def _groups_of(file: pq.ParquetFile, places: Positions) -> list[int]:
    """The row groups that some rows of a file are in."""
    ends = _ends(file, range(file.num_row_groups))
    found: list[int] = np.unique(np.searchsorted(ends, places, "right")).tolist()
    return found


def _inside(file: pq.ParquetFile, groups: Sequence[int], places: Positions) -> Positions:
    """The positions that some rows of a file have among those of some row groups alone."""
    ends = _ends(file, range(file.num_row_groups))
    sizes = np.diff(ends, prepend=0)
    group = np.searchsorted(ends, places, "right")
    at = np.searchsorted(groups, group)
    within = np.flatnonzero(np.append(groups, -1)[at] == group)
    starts = np.cumsum(sizes[groups]) - sizes[groups]
    own = group[within]
    found: Positions = places[within] - (ends - sizes)[own] + starts[at[within]]
    return found


def _hit(
    file: pq.ParquetFile, groups: list[int], positions: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """The row groups that have one of some rows, and the positions of the rows among them alone."""
    sizes = np.array([file.metadata.row_group(group).num_rows for group in groups])
    ends = np.cumsum(sizes)
    inside = np.searchsorted(ends, positions, "right")
    hit = np.unique(inside)
    left_out = (ends - sizes)[hit] - (np.cumsum(sizes[hit]) - sizes[hit])
    return [groups[at] for at in hit], positions - left_out[np.searchsorted(hit, inside)]


def _taken(
    file: pq.ParquetFile,
    groups: list[int],
    columns: list[str],
    positions: np.ndarray,
    *,
    use_threads: bool,
) -> pa.Table:
    """The rows at some positions of row groups, which are read in parts of bounded size."""
    found = [file.metadata.row_group(group) for group in groups]
    row_bytes = max(max(one.total_byte_size // max(one.num_rows, 1), 1) for one in found)
    size = max(_PART_BYTES // row_bytes, 1)
    if sum(one.num_rows for one in found) <= size or len(positions) > size:
        whole = file.read_row_groups(groups, columns, use_threads=use_threads)
        return whole.take(pa.array(positions))
    parts, start = [], 0
    for batch in file.iter_batches(size, groups, columns, use_threads=use_threads):
        end = start + len(batch)
        own = positions[(positions >= start) & (positions < end)] - start
        parts.append(batch.take(pa.array(own)))
        start = end
    return pa.Table.from_batches(parts)


def _rows_within(
    size_bytes: int,
    rows_max: int,
    footer: pq.FileMetaData,
    groups: Sequence[int],
    columns: Sequence[str],
) -> int:
    """How many rows of some columns take so many bytes, by the row group with the largest ones."""
    rows = rows_max
    for group in map(footer.row_group, groups):
        # Of few rows and of narrow ones, no column need be asked.
        if group.total_byte_size * rows <= size_bytes * group.num_rows:
            continue
        chunks = map(group.column, range(group.num_columns))
        wanted = sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if chunk.path_in_schema.partition(".")[0] in columns
        )
        rows = min(rows, max(size_bytes * group.num_rows // max(wanted, 1), 1))
    return rows


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
