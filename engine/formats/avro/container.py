"""Avro object container files that hold one record, as Hudi keeps them in its timeline."""

import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import fastavro

from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.walk import Walker
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, corrupt

# Far above any plan or commit, far below what would trouble a machine.
MAXIMUM_INFLATED_BYTES = 1 << 28
# Names with random digits in them do not pack so well; only what is small may.
_INFLATED_BYTES_FREE = 1 << 24
_INFLATION_MAX = 24
# An item becomes objects of some hundred bytes, however few it has in the file.
_ITEMS_FREE = 1 << 17
_BYTES_OF_ITEM_MIN = 8

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_REMEMBERED_SCHEMAS = 128
_Schema: TypeAlias = dict[str, object]


def read_container(payload: bytes, path: str) -> dict[str, object]:
    """The one record of a container file, by the schema that the file brings along."""
    header = _Header(payload, path)
    text = header.text("avro.schema")
    begin, block = header.block()
    codec = header.text("avro.codec", "null")
    datum = _inflated(block, codec, path)

    def failure(position: int, reason: str) -> CorruptTable:
        # In a compressed record the position has no meaning outside of the unpacked bytes.
        return corrupt(path, begin + position if codec == "null" else begin, reason)

    # The walk proves that lengths and counts are true; only then may memory be spent on values.
    items_max = _ITEMS_FREE + len(payload) // _BYTES_OF_ITEM_MIN
    walker = Walker(memoryview(datum), failure, items_max=items_max)
    step = walker.skip_of(parse_schema(text, path))
    if step(0, len(datum)) != len(datum):
        raise failure(len(datum), "Its record is longer than its fields.")
    try:
        found = fastavro.schemaless_reader(io.BytesIO(datum), _fast_schema(text), None)
    except Exception as error:
        # fastavro has no root for its errors, and its logical types raise their own.
        raise failure(0, f"Its record cannot be read: {error}.") from error
    assert isinstance(found, dict)
    return found


def write_container(
    record: Mapping[str, object], schema_text: str, *, deflated_from: int | None = None
) -> bytes:
    """A container file with this record; the schema text stands in it as it is.

    Equal records give equal bytes: the marker between blocks comes from what they hold. Records
    from so many bytes on are deflated.
    """
    content = encode_record(record, schema_text)
    is_deflated = deflated_from is not None and len(content) >= deflated_from
    return _file(schema_text.encode(), content, is_deflated=is_deflated)


def encode_record(record: Mapping[str, object], schema_text: str) -> bytes:
    """The bytes of a record alone, without the schema."""
    datum = io.BytesIO()
    try:
        fastavro.schemaless_writer(datum, _fast_schema(schema_text), record)
    except Exception as error:
        raise InvalidRequest(
            "record_does_not_fit",
            what="Avro cannot hold a record.",
            why=f"It does not fit its Avro schema: {error}.",
            now="Correct the record.",
        ) from error
    return datum.getvalue()


def plain_container(payload: bytes, path: str, *, bytes_max: int) -> bytes:
    """The same record without compression, for what is compressed together with others of its kind.

    A file with a larger record, or with no whole one, stays as it is.
    """
    try:
        header = _Header(payload, path)
        if header.text("avro.codec", "null") != "deflate":
            return payload
        content = _inflated(header.block()[1], "deflate", path)
    except CorruptTable:
        return payload
    if len(content) > bytes_max:
        return payload
    return _file(header.text("avro.schema").encode(), content, is_deflated=False)


def _file(schema: bytes, content: bytes, *, is_deflated: bool) -> bytes:
    """A file with one record; equal ones have equal bytes."""
    marker = hashlib.md5(schema + content, usedforsecurity=False).digest()
    named = [_sized(b"avro.schema") + _sized(schema)]
    if is_deflated:
        deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        content = deflater.compress(content) + deflater.flush()
        named.append(_sized(b"avro.codec") + _sized(b"deflate"))
    pairs = _number(len(named)) + b"".join(named) + _number(0)
    return b"".join((_MAGIC, pairs, marker, _number(1), _sized(content), marker))


def is_whole_container(payload: bytes) -> bool:
    """Whether a file was written to its end; its record is not looked at."""
    try:
        _Header(payload, "").block()
    except CorruptTable:
        return False
    return True


class _Header:
    """The file's own pairs of names and values, and the one block behind them."""

    def __init__(self, payload: bytes, path: str) -> None:
        self._payload = payload
        self._path = path
        self._walker = Walker(memoryview(payload), lambda at, reason: corrupt(path, at, reason))
        if not payload.startswith(_MAGIC):
            raise corrupt(path, 0, "It is not an Avro container file.")
        self._pairs, self._end = self._read_pairs(len(_MAGIC))

    def text(self, name: str, default: str | None = None) -> str:
        """The value under a name."""
        value = self._pairs.get(name.encode(), default)
        if value is None:
            raise corrupt(self._path, None, f"Its header has no {name}.")
        try:
            return value if isinstance(value, str) else value.decode()
        except UnicodeDecodeError as error:
            raise corrupt(self._path, None, f"The {name} in its header is not UTF-8.") from error

    def block(self) -> tuple[int, bytes]:
        """Where the one block begins, and its bytes; it must hold one record."""
        size = len(self._payload)
        marker = self._payload[self._end : self._end + _SYNC_SIZE]
        records, at = self._walker.number(self._end + _SYNC_SIZE, size)
        length, begin = self._walker.length(at, size)
        if records != 1:
            raise corrupt(self._path, at, f"Its first block has {records} records, not one.")
        end = begin + length
        if len(marker) < _SYNC_SIZE or self._payload[end:] != marker:
            raise corrupt(self._path, end, "Its block does not end in its marker and the file.")
        return begin, self._payload[begin:end]

    def _read_pairs(self, position: int) -> tuple[dict[bytes, bytes], int]:
        pairs: dict[bytes, bytes] = {}
        end = len(self._payload)
        while True:
            count, stop, position = self._walker.block(position, end, minimum=2)
            if count == 0:
                return pairs, position
            for _ in range(count):
                name, position = self._bytes(position)
                pairs[name], position = self._bytes(position)
            self._walker.check_stop(position, stop)

    def _bytes(self, position: int) -> tuple[bytes, int]:
        size, begin = self._walker.length(position, len(self._payload))
        return self._payload[begin : begin + size], begin + size


def _inflated(block: bytes, codec: str, path: str) -> bytes:
    if codec == "null":
        return block
    if codec != "deflate":
        raise InvalidRequest(
            "unsupported_codec",
            what=f"{path} is compressed with {codec}.",
            why="Lakewarden reads Avro files that are uncompressed or compressed with deflate.",
            now="Write the file without compression.",
            path=path,
            codec=codec,
        )
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    bytes_max = min(MAXIMUM_INFLATED_BYTES, _INFLATED_BYTES_FREE + _INFLATION_MAX * len(block))
    try:
        content = inflater.decompress(block, bytes_max)
    except zlib.error as error:
        raise corrupt(path, None, f"Its block cannot be inflated: {error}.") from error
    # Some writers leave bytes of a checksum behind the compressed data, so those do not matter.
    if not inflater.eof:
        raise corrupt(path, None, "Its block is cut off, or larger than any record.")
    return content


@lru_cache(maxsize=_REMEMBERED_SCHEMAS)
def _fast_schema(text: str) -> _Schema:
    parsed = fastavro.parse_schema(json.loads(text))
    assert isinstance(parsed, dict)
    return parsed


def _sized(content: bytes) -> bytes:
    return _number(len(content)) + content


def _number(value: int) -> bytes:
    """A zigzag varint of a number that is not negative."""
    octets, rest = bytearray(), value << 1
    while rest > 0x7F:
        octets.append(rest & 0x7F | 0x80)
        rest >>= 7
    octets.append(rest)
    return bytes(octets)
