"""Record positions: the base file rows a block's records belong to, as a 64-bit roaring bitmap.

The bytes are the portable serialisation: buckets of 2^32 values, each a standard 32-bit bitmap of
containers of 2^16 values, which are arrays, bitmaps or runs, whichever is smallest.
"""

import base64
import binascii
import struct
from dataclasses import dataclass

import numpy as np

from lakewarden.engine.kernel.errors import CorruptTable, corrupt

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE_WITH_RUNS = 12347
# With fewer containers and runs among them, the offset table is left out.
_OFFSETS_FROM = 4
_LARGEST_ARRAY = 4096
_BITMAP_BYTES = 8192
_CONTAINER_VALUES = 1 << 16
_UINT32 = struct.Struct("<I")
_INT64 = struct.Struct("<q")
_UINT16 = np.dtype("<u2")


def decode_positions(text: str, count: int, path: str) -> np.ndarray:
    """The positions in ascending order, as int64; there must be `count` of them.

    The number of records bounds the work: a bitmap of a few bytes can stand for billions of rows.
    """
    try:
        payload = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise corrupt(path, None, "The record positions are not Base64 text.") from None
    reader = _Reader(payload, path, left=count)
    buckets = reader.long()
    # A bucket takes 12 bytes at least: its high half, a cookie and a count.
    if buckets < 0 or buckets * 12 > reader.remaining:
        raise reader.corrupt(f"{buckets} position buckets do not fit.")
    parts = [np.zeros(0, dtype=np.int64)]
    for _ in range(buckets):
        high = reader.uint()
        if high >= 1 << 31:
            raise reader.corrupt("A record position is negative.")
        parts.append(_bitmap(reader) + (high << 32))
    positions = np.concatenate(parts)
    if reader.remaining or reader.left:
        raise reader.corrupt("The record positions do not match the number of records.")
    if np.any(np.diff(positions) <= 0):
        raise reader.corrupt("The record positions are not in ascending order.")
    return positions


@dataclass(slots=True)
class _Reader:
    payload: bytes
    path: str
    # How many positions may still come.
    left: int
    cursor: int = 0

    @property
    def remaining(self) -> int:
        return len(self.payload) - self.cursor

    def corrupt(self, reason: str) -> CorruptTable:
        return corrupt(self.path, None, reason)

    def bytes(self, size: int) -> bytes:
        if size > self.remaining:
            raise self.corrupt("The record positions end too early.")
        self.cursor += size
        return self.payload[self.cursor - size : self.cursor]

    def uint(self) -> int:
        return int(_UINT32.unpack(self.bytes(4))[0])

    def long(self) -> int:
        return int(_INT64.unpack(self.bytes(8))[0])

    def shorts(self, count: int) -> np.ndarray:
        return np.frombuffer(self.bytes(2 * count), dtype=_UINT16).astype(np.int64)

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise self.corrupt("There are more record positions than records.")


def _bitmap(reader: _Reader) -> np.ndarray:
    cookie = reader.uint()
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        containers = (cookie >> 16) + 1
        flags = np.frombuffer(reader.bytes((containers + 7) // 8), dtype=np.uint8)
        is_run = np.unpackbits(flags, bitorder="little")[:containers].astype(bool)
        has_offsets = containers >= _OFFSETS_FROM
    elif cookie == _COOKIE_WITHOUT_RUNS:
        containers = reader.uint()
        if containers > _CONTAINER_VALUES or containers * 4 > reader.remaining:
            raise reader.corrupt(f"{containers} position containers do not fit.")
        is_run = np.zeros(containers, dtype=bool)
        has_offsets = True
    else:
        raise reader.corrupt("The record positions are not a roaring bitmap.")
    described = reader.shorts(2 * containers).reshape(-1, 2)
    if has_offsets:
        reader.bytes(4 * containers)
    parts = [np.zeros(0, dtype=np.int64)]
    for (key, last), run in zip(described.tolist(), is_run.tolist(), strict=True):
        reader.spend(last + 1)
        parts.append(_container(reader, last + 1, run=run) + (key << 16))
    return np.concatenate(parts)


def _container(reader: _Reader, count: int, *, run: bool) -> np.ndarray:
    if run:
        values = _runs(reader, count)
    elif count <= _LARGEST_ARRAY:
        values = reader.shorts(count)
    else:
        bits = np.frombuffer(reader.bytes(_BITMAP_BYTES), dtype=np.uint8)
        values = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    if len(values) != count:
        raise reader.corrupt("A position container does not hold what it announces.")
    return values


def _runs(reader: _Reader, count: int) -> np.ndarray:
    (runs,) = reader.shorts(1).tolist()
    pairs = reader.shorts(2 * runs).reshape(-1, 2)
    starts, lengths = pairs[:, 0], pairs[:, 1] + 1
    if int(lengths.sum()) != count or np.any(starts + lengths > _CONTAINER_VALUES):
        raise reader.corrupt("The runs of a position container do not add up.")
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(count)


def encode_positions(positions: np.ndarray) -> str:
    """The header text for positions, which must be ascending, unique and not negative."""
    ordered = np.asarray(positions, dtype=np.int64)
    assert not len(ordered) or (ordered[0] >= 0 and bool(np.all(np.diff(ordered) > 0)))
    highs, starts = np.unique(ordered >> 32, return_index=True)
    parts = [_INT64.pack(len(highs))]
    for high, bucket in zip(highs.tolist(), np.split(ordered, starts[1:]), strict=False):
        parts.append(_UINT32.pack(high) + _encode_bitmap(bucket & 0xFFFFFFFF))
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _encode_bitmap(values: np.ndarray) -> bytes:
    keys, starts = np.unique(values >> 16, return_index=True)
    pieces = np.split(values & 0xFFFF, starts[1:])
    encoded = [_encode_container(piece) for piece in pieces]
    is_run = np.array([run for _, run in encoded])
    described = np.column_stack([keys, [len(piece) - 1 for piece in pieces]])
    if is_run.any():
        cookie = _UINT32.pack(_COOKIE_WITH_RUNS | (len(keys) - 1) << 16)
        cookie += np.packbits(is_run, bitorder="little").tobytes()
    else:
        cookie = _UINT32.pack(_COOKIE_WITHOUT_RUNS) + _UINT32.pack(len(keys))
    head = cookie + described.astype(_UINT16).tobytes()
    bodies = [body for body, _ in encoded]
    if not is_run.any() or len(keys) >= _OFFSETS_FROM:
        head += _offsets([len(body) for body in bodies], len(head))
    return head + b"".join(bodies)


def _encode_container(values: np.ndarray) -> tuple[bytes, bool]:
    breaks = np.flatnonzero(np.diff(values) != 1)
    run_bytes = 2 + 4 * (len(breaks) + 1)
    if run_bytes < min(2 * len(values), _BITMAP_BYTES):
        starts = values[np.concatenate([[0], breaks + 1])]
        ends = values[np.concatenate([breaks, [len(values) - 1]])]
        pairs = np.column_stack([starts, ends - starts]).ravel()
        runs = np.concatenate([[len(breaks) + 1], pairs])
        return runs.astype(_UINT16).tobytes(), True
    if len(values) <= _LARGEST_ARRAY:
        return values.astype(_UINT16).tobytes(), False
    bits = np.zeros(_CONTAINER_VALUES, dtype=bool)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes(), False


def _offsets(sizes: list[int], head_bytes: int) -> bytes:
    first = head_bytes + 4 * len(sizes)
    before = np.cumsum([0, *sizes[:-1]])
    return (before + first).astype("<u4").tobytes()
