"""HFile entries: ours against plain Python loops, for writing, reading whole and looking up."""

import random
import struct
import tempfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measure import OURS, Measure, clocked, faster, in_turns, within
from bench.workloads import hex_texts
from lakewarden.engine.formats.hfile import HFile, write_hfile
from lakewarden.engine.formats.hfile.writer import CodecName
from lakewarden.engine.formats.range_source import BufferSource, FileRanges

ROWS = 500_000
LOOKUP_ROWS = 2_000_000
LOOKUP_KEYS = 1_000
SHAPE = "entries like those of a record index, 36-character keys, 64 KB blocks"
SCHEMA = '"bytes"'
BLOCK_BYTES = 65536
HEADER = struct.Struct(">8siiqbii")
SIZES = struct.Struct(">iih")
SUFFIX = b"\0\x7f" + b"\xff" * 7 + b"\x04"

Cells = tuple[list[bytes], list[bytes]]


def run() -> list[Measure]:
    """Write, read and look up entries of a record index."""
    keys, values = record_index_entries(ROWS)
    return [
        *(_write(keys, values, codec) for codec in ("none", "gzip")),
        *(_read(keys, values, codec) for codec in ("none", "gzip")),
        _lookup(),
    ]


def record_index_entries(rows: int) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]:
    """Sorted random keys, and values of a few hundred file groups and instants."""
    chance = np.random.default_rng(3)
    keys = hex_texts(chance, rows, 36, dashes=True).cast(pa.large_binary())
    places = [
        b"\x00\x0a\x00\x00\x00\x02\x02\x0epart=%02d\x02" % (place % 50)
        + chance.bytes(16)
        + b"\x02\x00\x02\x00\x02"
        + chance.bytes(6)
        + bytes(3 + place % 5)
        for place in range(400)
    ]
    chosen = pa.array(places, pa.large_binary()).take(pa.array(chance.integers(0, 400, rows)))
    return keys.take(pc.sort_indices(keys)), chosen


def _write(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, codec: CodecName) -> Measure:
    def ours() -> bytes:
        return write_hfile(keys, values, schema_text=SCHEMA, created_ms=0, codec=codec)

    def loop() -> int:
        return len(written_by_a_loop(keys, values, gzip_6 if codec == "gzip" else unpacked))

    assert HFile(BufferSource(ours()), "bench.hfile").entries().keys.equals(keys)
    peer = f"a plain Python loop{' with zlib at level 6' if codec == 'gzip' else ''}"
    return faster(
        f"write {ROWS:,} {SHAPE}, codec {codec}",
        in_turns({OURS: clocked(ours), peer: clocked(loop)}),
        peer,
        at_least=5 if codec == "gzip" else 1.3,
        includes="both begin with Arrow columns; ours also checks the order, and writes index "
        "and trailer",
    )


def _read(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, codec: CodecName) -> Measure:
    content = write_hfile(keys, values, schema_text=SCHEMA, created_ms=0, codec=codec)
    unpack: Callable[[bytes], bytes] = zlib_unpacked if codec == "gzip" else bytes

    def ours() -> int:
        return len(HFile(BufferSource(content), "bench.hfile").entries())

    assert read_by_a_loop(content, unpack) == (keys.to_pylist(), values.to_pylist())
    peer = "a plain Python loop"
    return faster(
        f"read {ROWS:,} {SHAPE}, codec {codec}",
        in_turns({OURS: clocked(ours), peer: clocked(lambda: read_by_a_loop(content, unpack))}),
        peer,
        at_least=1.3,
        includes="ours opens the file and ends with Arrow columns; the loop gets no further than "
        "lists of bytes",
    )


def _lookup() -> Measure:
    keys, values = record_index_entries(LOOKUP_ROWS)
    content = write_hfile(keys, values, schema_text=SCHEMA, created_ms=0, codec="none")
    wanted = sorted(random.Random(5).sample(keys.to_pylist(), LOOKUP_KEYS))
    blocks = blocks_of(content, bytes)
    assert len(found_by_a_loop(blocks, wanted)) == LOOKUP_KEYS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.hfile"
        path.write_bytes(content)

        def ours() -> None:
            with pa.OSFile(str(path)) as file:
                assert len(HFile(FileRanges(file), path.name).lookup(wanted)) == LOOKUP_KEYS

        peer = "a plain Python loop over the same blocks in memory"
        rounds = in_turns(
            {OURS: clocked(ours), peer: clocked(lambda: found_by_a_loop(blocks, wanted))}, rounds=9
        )
    return within(
        f"look up {LOOKUP_KEYS:,} random keys of {LOOKUP_ROWS:,} {SHAPE}, codec none",
        rounds,
        at_most_ms=40,
        includes="opening the local file, reading its index and the blocks that hold the keys",
    )


def gzip_6(content: bytes) -> bytes:
    return zlib.compress(content, 6, 31)


def unpacked(content: bytes) -> bytes:
    return content


def zlib_unpacked(content: bytes) -> bytes:
    return zlib.decompress(content, 31)


def written_by_a_loop(
    keys: pa.Array, values: pa.Array, pack: Callable[[bytes], bytes]
) -> bytearray:
    """The data blocks of an HFile, one entry after the other."""
    out, block = bytearray(), bytearray()
    sizes, suffix = SIZES.pack, SUFFIX

    def flush() -> None:
        packed = pack(bytes(block))
        framed = HEADER.size + len(packed)
        checksums = bytes(4 * -(-framed // 16384))
        out.extend(
            HEADER.pack(b"DATABLK*", len(packed) + len(checksums), len(block), -1, 0, 16384, framed)
        )
        out.extend(packed)
        out.extend(checksums)
        block.clear()

    for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
        if len(block) + len(key) + len(value) + 9 > BLOCK_BYTES:
            flush()
        block += sizes(len(key) + 12, len(value), len(key))
        block += key
        block += suffix
        block += value
        block.append(0)
    flush()
    return out


def blocks_of(content: bytes, unpack: Callable[[bytes], bytes]) -> list[bytes]:
    """The unpacked data blocks of an HFile."""
    blocks, at = [], 0
    while content[at : at + 8] == b"DATABLK*":
        _, behind_header, _, _, _, _, framed = HEADER.unpack_from(content, at)
        blocks.append(unpack(content[at + HEADER.size : at + framed]))
        at += HEADER.size + behind_header
    return blocks


def read_by_a_loop(content: bytes, unpack: Callable[[bytes], bytes]) -> Cells:
    """All keys and values, one entry after the other."""
    keys, values = [], []
    sizes = SIZES.unpack_from
    for block in blocks_of(content, unpack):
        at, end = 0, len(block)
        while at < end:
            key_size, value_size, content_size = sizes(block, at)
            value_start = at + 8 + key_size
            keys.append(block[at + 10 : at + 10 + content_size])
            values.append(block[value_start : value_start + value_size])
            at = value_start + value_size + 1
    return keys, values


def found_by_a_loop(blocks: Sequence[bytes], wanted: Sequence[bytes]) -> dict[bytes, bytes]:
    """The values of some keys: bisection over the blocks, then their cells from the first on."""
    first_keys = [block[10 : 10 + SIZES.unpack_from(block, 0)[2]] for block in blocks]
    found = {}
    sizes = SIZES.unpack_from
    for key in wanted:
        block = blocks[bisect_right(first_keys, key) - 1]
        at, end = 0, len(block)
        while at < end:
            key_size, value_size, content_size = sizes(block, at)
            if block[at + 10 : at + 10 + content_size] == key:
                value_start = at + 8 + key_size
                found[key] = block[value_start : value_start + value_size]
                break
            at += 9 + key_size + value_size
    return found
