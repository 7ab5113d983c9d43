"""The trailer: the last 4096 bytes of an HFile, from which everything else is found."""

from dataclasses import dataclass

from lakewarden.engine.formats.hfile.layout import (
    CELL_BYTES_MIN,
    HEADER_SIZE,
    MAJOR_VERSION,
    NO_OFFSET,
    TRAILER,
    TRAILER_SIZE,
    Codec,
    codec_of,
)
from lakewarden.engine.formats.hfile.packing import DEFLATE_RATIO_MAX
from lakewarden.engine.formats.hfile.protobuf import (
    MalformedProtobuf,
    bytes_field,
    delimited,
    number_field,
    read_delimited,
    read_fields,
)
from lakewarden.engine.kernel.errors import corrupt

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
