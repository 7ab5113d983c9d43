"""The trailer: the last 4096 bytes of an HFile, from which everything else is found.

As much of protobuf as trailers and file infos need: varints and length-delimited fields.
from functools import lru_cache

The file info block: names and values about a file as a whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lakewarden.engine.formats.hfile.blocks import (
    CELL_BYTES_MIN,
    DEFLATE_RATIO_MAX,
    HEADER_SIZE,
    MAJOR_VERSION,
    NO_OFFSET,
    TRAILER,
    TRAILER_SIZE,
    Codec,
    codec_of,
)
from lakewarden.engine.kernel.errors import corrupt

_VARINT, _DELIMITED = 0, 2
_FIXED_WIDTHS = {1: 8, 5: 4}
_UINT64 = (1 << 64) - 1
_VARINT_BYTES_MAX = 10


class MalformedProtobuf(ValueError):
    """The bytes are no message; the reader that knows the file turns this into `CorruptTable`."""


def read_varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """An unsigned varint and the position behind it."""
    value = 0
    for index, octet in enumerate(content[at : min(at + _VARINT_BYTES_MAX, end)]):
        value |= (octet & 0x7F) << (7 * index)
        if octet < 0x80:
            return value & _UINT64, at + index + 1
    raise MalformedProtobuf("A varint is cut off or too long.")


def read_delimited(content: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Bytes that follow their length, and the position behind them."""
    length, at = read_varint(content, at, end)
    if length > end - at:
        raise MalformedProtobuf("A field is longer than what holds it.")
    return content[at : at + length], at + length


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: number and value."""
    at, end = 0, len(message)
    value: int | bytes
    while at < end:
        tag, at = read_varint(message, at, end)
        kind = tag & 7
        if kind == _VARINT:
            value, at = read_varint(message, at, end)
        elif kind == _DELIMITED:
            value, at = read_delimited(message, at, end)
        elif kind in _FIXED_WIDTHS:
            value, at = _read_fixed(message, at, _FIXED_WIDTHS[kind])
        else:
            raise MalformedProtobuf(f"There is no wire type {kind}.")
        yield tag >> 3, value


def _read_fixed(message: bytes, at: int, width: int) -> tuple[int, int]:
    if width > len(message) - at:
        raise MalformedProtobuf("A field is longer than what holds it.")
    return int.from_bytes(message[at : at + width], "little"), at + width


def varint(value: int) -> bytes:
    """A number as varint; a negative one as the 64 bits of its two's complement."""
    value &= _UINT64
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def delimited(content: bytes) -> bytes:
    """Bytes behind their length."""
    return varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | _DELIMITED) + delimited(value)


SCHEMA = "schema"
LAST_KEY = "hfile.LASTKEY"
AVERAGE_KEY_LENGTH = "hfile.AVG_KEY_LEN"
AVERAGE_VALUE_LENGTH = "hfile.AVG_VALUE_LEN"
CREATED_MS = "hfile.CREATE_TIME_TS"
KEY_VALUE_VERSION = "KEY_VALUE_VERSION"
HIGHEST_MEMORY_TIMESTAMP = "MAX_MEMSTORE_TS_KEY"
BLOOM_TYPE = "bloomFilterTypeCode"
MIN_RECORD_KEY = "minRecordKey"
MAX_RECORD_KEY = "maxRecordKey"

# The order in which Java's hash map gives these names; other names come behind.
_JAVA_ORDER = (
    SCHEMA,
    BLOOM_TYPE,
    LAST_KEY,
    AVERAGE_VALUE_LENGTH,
    MIN_RECORD_KEY,
    AVERAGE_KEY_LENGTH,
    MAX_RECORD_KEY,
    KEY_VALUE_VERSION,
    HIGHEST_MEMORY_TIMESTAMP,
    CREATED_MS,
)
PLAIN_VERSION = (1).to_bytes(4, "big")
_PROTOBUF = b"PBUF"
_PAIR, _NAME, _VALUE = 1, 1, 2
# Each write opens the logs of the metadata table that are not folded yet.
_KEPT_MAX, _KEPT_BYTES_MAX = 128, 32 << 10


def parse_file_info(content: bytes, path: str, offset: int) -> Mapping[str, bytes]:
    """The pairs of an unpacked file info block."""
    if not content.startswith(_PROTOBUF):
        raise corrupt(path, offset, "The file info is not in the form of HFile version 3.")
    try:
        return _kept_pairs(content) if len(content) <= _KEPT_BYTES_MAX else _pairs(content)
    except MalformedProtobuf as cause:
        raise corrupt(path, offset, str(cause)) from cause


def _pairs(content: bytes) -> Mapping[str, bytes]:
    message, _ = read_delimited(content, len(_PROTOBUF), len(content))
    return dict(_pair(value) for field, value in read_fields(message) if field == _PAIR)


_kept_pairs = lru_cache(maxsize=_KEPT_MAX)(_pairs)


def _pair(message: int | bytes) -> tuple[str, bytes]:
    fields = dict(read_fields(message)) if isinstance(message, bytes) else {}
    name, value = fields.get(_NAME, b""), fields.get(_VALUE, b"")
    if not isinstance(name, bytes) or not isinstance(value, bytes):
        raise MalformedProtobuf("A pair of the file info is not bytes and bytes.")
    return name.decode("utf-8", "replace"), value


def has_plain_versions(pairs: Mapping[str, bytes]) -> bool:
    """Whether each cell ends with a version of one empty byte, as in every file of Hudi."""
    return pairs.get(KEY_VALUE_VERSION) == PLAIN_VERSION and not any(
        pairs.get(HIGHEST_MEMORY_TIMESTAMP, b"")
    )


def file_info_bytes(pairs: Mapping[str, bytes]) -> bytes:
    """A file info block, in the order of the Java writer of Hudi."""
    names = [name for name in _JAVA_ORDER if name in pairs]
    names += sorted(pairs.keys() - set(names))
    message = b"".join(
        bytes_field(_PAIR, bytes_field(_NAME, name.encode()) + bytes_field(_VALUE, pairs[name]))
        for name in names
    )
    return _PROTOBUF + delimited(message)


_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"

_FILE_INFO_OFFSET = 1
_LOAD_ON_OPEN_OFFSET = 2
_UNPACKED_DATA_BYTES = 3
_DATA_INDEX_COUNT = 5
_META_INDEX_COUNT = 6
_ENTRY_COUNT = 7
_INDEX_LEVELS = 8
_FIRST_DATA_OFFSET = 9
_LAST_DATA_OFFSET = 10
_COMPARATOR_NAME = 11
_CODEC = 12

# HBase's indexes rarely have three levels; every level more multiplies the file by thousands.
_INDEX_LEVELS_MAX = 8


@dataclass(frozen=True, slots=True)
class Trailer:
    """Where the parts of a file are, and how many there are of each."""

    file_info_offset: int
    load_on_open_offset: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    codec: Codec
    index_levels: int = 1
    # Only written: the size of all data blocks when unpacked, and where the first and last are.
    unpacked_data_bytes: int = 0
    first_data_offset: int = NO_OFFSET
    last_data_offset: int = 0


def parse_trailer(raw: bytes, size: int, path: str) -> Trailer:
    """The trailer of a file of some size, every number of it possible for that size."""
    offset = size - TRAILER_SIZE
    if offset < 0 or len(raw) != TRAILER_SIZE:
        raise corrupt(path, 0, f"A file of {size} bytes is too short to be an HFile.")
    if not raw.startswith(TRAILER):
        raise corrupt(path, offset, "There is no HFile trailer.")
    version = int.from_bytes(raw[-3:], "big")
    if version != MAJOR_VERSION:
        raise corrupt(path, size - 3, f"This is an HFile of version {version} instead of 3.")
    try:
        message, _ = read_delimited(raw, len(TRAILER), TRAILER_SIZE - 4)
        numbers = {n: value for n, value in read_fields(message) if isinstance(value, int)}
    except MalformedProtobuf as cause:
        raise corrupt(path, offset, str(cause)) from cause
    return _checked(numbers, offset, path)


def _checked(numbers: dict[int, int], offset: int, path: str) -> Trailer:
    def number(field: int, limit: int) -> int:
        value = numbers.get(field, -1)
        if not 0 <= value <= limit:
            raise corrupt(path, offset, f"Field {field} of the trailer is missing or impossible.")
        return value

    load_on_open = number(_LOAD_ON_OPEN_OFFSET, offset)
    file_info = number(_FILE_INFO_OFFSET, offset)
    if file_info < load_on_open:
        raise corrupt(path, offset, "The file info is not where everything to load is.")
    blocks_max = offset // HEADER_SIZE
    return Trailer(
        file_info_offset=file_info,
        load_on_open_offset=load_on_open,
        data_index_count=number(_DATA_INDEX_COUNT, blocks_max),
        meta_index_count=number(_META_INDEX_COUNT, blocks_max),
        entry_count=number(_ENTRY_COUNT, load_on_open * DEFLATE_RATIO_MAX // CELL_BYTES_MIN),
        codec=codec_of(numbers.get(_CODEC, -1), path, offset),
        index_levels=number(_INDEX_LEVELS, _INDEX_LEVELS_MAX),
    )


def trailer_bytes(trailer: Trailer) -> bytes:
    """A trailer as the Java writer of Hudi lays it out."""
    fields = {
        _FILE_INFO_OFFSET: trailer.file_info_offset,
        _LOAD_ON_OPEN_OFFSET: trailer.load_on_open_offset,
        _UNPACKED_DATA_BYTES: trailer.unpacked_data_bytes,
        _DATA_INDEX_COUNT: trailer.data_index_count,
        _META_INDEX_COUNT: trailer.meta_index_count,
        _ENTRY_COUNT: trailer.entry_count,
        _INDEX_LEVELS: trailer.index_levels,
        _FIRST_DATA_OFFSET: trailer.first_data_offset,
        _LAST_DATA_OFFSET: trailer.last_data_offset,
    }
    message = b"".join(number_field(field, value) for field, value in fields.items())
    message += bytes_field(_COMPARATOR_NAME, _COMPARATOR) + number_field(_CODEC, trailer.codec)
    content = TRAILER + delimited(message)
    version = MAJOR_VERSION.to_bytes(4, "big")
    return content.ljust(TRAILER_SIZE - len(version), b"\0") + version
