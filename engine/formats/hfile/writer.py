"""Writing HFiles byte for byte as the Java writer of Hudi lays them out.

Entries come in key order. They are laid out some megabytes at a time and cut into blocks there, so
memory does not depend on how many there are; the block that is still open is carried on.

Cells for writing: keys and values laid out as the content of data blocks.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.bloom import BloomFilter
from lakewarden.engine.formats.hfile import trailer as file_info
from lakewarden.engine.formats.hfile.blocks import (
    CELL_VERSION,
    CONTENT_OFFSET,
    CONTENT_SIZE_BYTES,
    DATA,
    FILE_INFO,
    KEY_BYTES_MAX,
    KEY_EXTRA_BYTES,
    KEY_SUFFIX,
    META,
    NO_OFFSET,
    ROOT_INDEX,
    BlockPlace,
    Codec,
    frame,
    pack,
)
from lakewarden.engine.formats.hfile.index import root_index_bytes
from lakewarden.engine.formats.hfile.trailer import Trailer, trailer_bytes
from lakewarden.engine.formats.octets import large_binary, octets_of
from lakewarden.engine.kernel.errors import InvalidRequest

_VALUE_BYTES_MAX = (1 << 30) - 1
_SIZES = np.dtype([("key", ">i4"), ("value", ">i4"), ("content", ">i2")])


@dataclass(frozen=True, slots=True)
class LaidOutCells:
    """Cells end to end; `bounds` has one offset more than there are cells."""

    content: memoryview = field(repr=False)
    bounds: npt.NDArray[np.int64]


def lay_out(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> LaidOutCells:
    """The cells of some keys and values."""
    sizes = np.empty(len(keys), _SIZES)
    sizes["content"] = _lengths(keys, KEY_BYTES_MAX, "key")
    sizes["value"] = _lengths(values, _VALUE_BYTES_MAX, "value")
    sizes["key"] = sizes["content"] + np.int32(KEY_EXTRA_BYTES)
    cells = pc.binary_join_element_wise(
        _fixed_width(sizes.view(np.uint8)),
        keys,
        pa.scalar(KEY_SUFFIX, pa.large_binary()),
        values,
        pa.scalar(CELL_VERSION, pa.large_binary()),
        pa.scalar(b"", pa.large_binary()),
    )
    _, bounds, content = cells.buffers()
    return LaidOutCells(
        memoryview(content or b""), np.frombuffer(bounds, np.int64)[: len(keys) + 1]
    )


def _fixed_width(octets: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    bounds = np.arange(0, len(octets) + 1, CONTENT_OFFSET)
    return pa.Array.from_buffers(
        pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(octets)]
    )


def _lengths(binaries: pa.LargeBinaryArray, limit: int, what: str) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.binary_length(binaries).to_numpy()
    longest = int(lengths.max(initial=0))
    if longest > limit:
        raise InvalidRequest(
            "entry_too_long",
            what=f"A {what} of {longest} bytes does not fit into an HFile.",
            why=f"A {what} in an HFile has at most {limit} bytes.",
            now=f"Shorten the longest {what}.",
            length=longest,
            limit=limit,
        )
    return lengths


BLOOM_META = "bloomFilter"
DEFAULT_BLOCK_BYTES = 1 << 16

CodecName = Literal["gzip", "none"]
_CODECS = {"gzip": Codec.GZIP, "none": Codec.NONE}
# Entries laid out in one go have about so many bytes.
_SLICE_BYTES = 8 << 20


class Sink(Protocol):
    """Where the bytes of a file go, one after the other."""

    def write(self, content: bytes | memoryview, /) -> object: ...


class HFileWriter:
    """Writes one HFile: `append` entries in key order, then `close`."""

    def __init__(
        self,
        sink: Sink,
        *,
        schema_text: str,
        created_ms: int,
        codec: CodecName = "gzip",
        block_bytes: int = DEFAULT_BLOCK_BYTES,
    ) -> None:
        self._blocks = _BlockWriter(sink, _codec(codec))
        self._schema_text = schema_text
        self._created_ms = created_ms
        self._block_bytes = block_bytes
        self._first_keys: list[bytes] = []
        self._places: list[BlockPlace] = []
        self._open_parts: list[memoryview] = []
        self._open_bytes = 0
        self._last_key: bytes | None = None
        self._entry_count = self._key_bytes = self._value_bytes = self._data_bytes = 0

    def append(self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> None:
        """Add entries whose keys follow those before; a key may occur several times in a row."""
        if len(keys) != len(values):
            raise InvalidRequest(
                "uneven_entries",
                what=f"There are {len(keys)} keys and {len(values)} values.",
                why="Each entry has one key and one value.",
                now="Pass columns of equal length.",
            )
        for some_keys, some_values in _slices(large_binary(keys), large_binary(values)):
            is_new = self._check_order(some_keys)
            cells = lay_out(some_keys, some_values)
            self._add(cells, some_keys, self._cuts(cells.bounds, is_new))
            self._last_key = some_keys[-1].as_py()
            self._entry_count += len(some_keys)
            self._key_bytes += pc.sum(pc.binary_length(some_keys)).as_py()
            self._value_bytes += pc.sum(pc.binary_length(some_values)).as_py()

    def close(self, *, key_filter: BloomFilter | None = None) -> None:
        """Finish the file. A base file takes a filter of its keys, a log block does not."""
        self._close_block()
        meta = {BLOOM_META: key_filter.text().encode()} if key_filter else {}
        meta_places = [self._blocks.write(META, content) for content in meta.values()]
        load_on_open_offset = self._blocks.offset
        index_keys = [_with_length(key) for key in self._first_keys]
        self._blocks.write(ROOT_INDEX, root_index_bytes(index_keys, self._places))
        names = [name.encode() for name in meta]
        self._blocks.write(ROOT_INDEX, root_index_bytes(names, meta_places))
        info = self._blocks.write(FILE_INFO, file_info.file_info_bytes(self._info(key_filter)))
        trailer = Trailer(
            file_info_offset=info.offset,
            load_on_open_offset=load_on_open_offset,
            data_index_count=len(self._places),
            meta_index_count=len(meta_places),
            entry_count=self._entry_count,
            codec=self._blocks.codec,
            unpacked_data_bytes=self._data_bytes,
            first_data_offset=self._places[0].offset if self._places else NO_OFFSET,
            last_data_offset=self._places[-1].offset if self._places else 0,
        )
        self._blocks.sink.write(trailer_bytes(trailer))

    def _check_order(self, keys: pa.LargeBinaryArray) -> npt.NDArray[np.bool_]:
        """Which keys are not the same as the one before; none may be smaller."""
        before, after = keys.slice(0, len(keys) - 1), keys.slice(1)
        is_new = np.ones(len(keys), np.bool_)
        is_new[1:] = pc.greater(after, before).to_numpy(zero_copy_only=False)
        is_falling = not is_new.all() and pc.any(pc.less(after, before)).as_py()
        if self._last_key is not None:
            first = keys[0].as_py()
            is_new[0] = first != self._last_key
            is_falling = is_falling or first < self._last_key
        if is_falling:
            raise InvalidRequest(
                "unsorted_keys",
                what="The keys for an HFile are not in ascending order.",
                why="Readers find keys by bisection.",
                now="Sort the entries by the bytes of their keys.",
            )
        return is_new

    def _cuts(self, bounds: npt.NDArray[np.int64], is_new: npt.NDArray[np.bool_]) -> list[int]:
        """The rows that begin a new block.

        As in Java: a block ends before the row with which key, value and 9 more bytes would exceed
        its size; but rows with the same key stay together.
        """
        beginnings = np.flatnonzero(is_new)
        cuts: list[int] = []
        block_start, row_min = -self._open_bytes, 0 if self._open_bytes else 1
        while True:
            limit = block_start + self._block_bytes + KEY_EXTRA_BYTES
            row = max(int(np.searchsorted(bounds, limit, "right")) - 1, row_min)
            choice = int(np.searchsorted(beginnings, row))
            if choice == len(beginnings):
                return cuts
            cut = int(beginnings[choice])
            cuts.append(cut)
            block_start, row_min = int(bounds[cut]), cut + 1

    def _add(self, cells: LaidOutCells, keys: pa.LargeBinaryArray, cuts: list[int]) -> None:
        """Add cells to the open block, beginning a new one at each cut."""
        if not self._open_bytes:
            self._first_keys.append(keys[0].as_py())
        self._first_keys += keys.take(pa.array(cuts, pa.int64())).to_pylist()
        bounds = cells.bounds[[0, *cuts, len(keys)]].tolist()
        for number, (start, end) in enumerate(pairwise(bounds)):
            if number:
                self._close_block()
            self._open_parts.append(cells.content[start:end])
            self._open_bytes += end - start

    def _close_block(self) -> None:
        if not self._open_bytes:
            return
        parts = self._open_parts
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        self._places.append(self._blocks.write(DATA, content))
        self._data_bytes += self._open_bytes
        self._open_parts, self._open_bytes = [], 0

    def _info(self, key_filter: BloomFilter | None) -> dict[str, bytes]:
        last_key = self._last_key or b""
        entries = max(self._entry_count, 1)
        info = {
            file_info.SCHEMA: self._schema_text.encode(),
            file_info.LAST_KEY: _with_length(last_key) if last_key else b"",
            file_info.AVERAGE_KEY_LENGTH: _int(self._key_bytes // entries),
            file_info.AVERAGE_VALUE_LENGTH: _int(self._value_bytes // entries),
            file_info.CREATED_MS: self._created_ms.to_bytes(8, "big"),
            file_info.KEY_VALUE_VERSION: file_info.PLAIN_VERSION,
            file_info.HIGHEST_MEMORY_TIMESTAMP: bytes(8),
        }
        if key_filter:
            info[file_info.BLOOM_TYPE] = key_filter.type_code.encode()
            info[file_info.MIN_RECORD_KEY] = self._first_keys[0] if self._first_keys else b""
            info[file_info.MAX_RECORD_KEY] = last_key
        return info


def write_hfile(
    keys: pa.Array | pa.ChunkedArray,
    values: pa.Array | pa.ChunkedArray,
    *,
    schema_text: str,
    created_ms: int,
    codec: CodecName = "gzip",
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    key_filter: BloomFilter | None = None,
) -> bytes:
    """An HFile of entries in key order, as bytes."""
    sink = io.BytesIO()
    writer = HFileWriter(
        sink,
        schema_text=schema_text,
        created_ms=created_ms,
        codec=codec,
        block_bytes=block_bytes,
    )
    writer.append(keys, values)
    writer.close(key_filter=key_filter)
    return sink.getvalue()


class _BlockWriter:
    """Packs and frames blocks, and knows where each one went."""

    def __init__(self, sink: Sink, codec: Codec) -> None:
        self.sink = sink
        self.codec = codec
        self.offset = 0

    def write(self, kind: bytes, content: bytes | memoryview) -> BlockPlace:
        packed = pack(content, self.codec)
        header, checksums = frame(kind, packed, len(content))
        for part in (header, packed, checksums):
            self.sink.write(part)
        place = BlockPlace(self.offset, len(header) + len(packed) + len(checksums))
        self.offset = place.end
        return place


def _codec(name: str) -> Codec:
    if name not in _CODECS:
        raise InvalidRequest(
            "unsupported_hfile_codec",
            what=f"Lakewarden cannot compress HFiles with {name!r}.",
            why="Java reads HFiles compressed with gzip, and uncompressed ones.",
            now="Choose 'gzip' or 'none'.",
            codec=name,
        )
    return _CODECS[name]


def _slices(
    keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray
) -> Iterator[tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]]:
    """Keys and values in slices of some megabytes, at least one entry each."""
    sizes = octets_of(keys)[1] + octets_of(values)[1]
    start = 0
    while start < len(keys):
        stop = int(np.searchsorted(sizes, sizes[start] + _SLICE_BYTES))
        stop = min(max(stop, start + 1), len(keys))
        yield keys.slice(start, stop - start), values.slice(start, stop - start)
        start = stop


def _with_length(key: bytes) -> bytes:
    return len(key).to_bytes(CONTENT_SIZE_BYTES, "big") + key


def _int(number: int) -> bytes:
    return number.to_bytes(4, "big")
