"""The file info block: names and values about a file as a whole."""

from collections.abc import Mapping

from lakewarden.engine.formats.hfile.protobuf import (
    MalformedProtobuf,
    bytes_field,
    delimited,
    read_delimited,
    read_fields,
)
from lakewarden.engine.kernel.errors import corrupt

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


def parse_file_info(content: bytes, path: str, offset: int) -> dict[str, bytes]:
    """The pairs of an unpacked file info block."""
    if not content.startswith(_PROTOBUF):
        raise corrupt(path, offset, "The file info is not in the form of HFile version 3.")
    try:
        message, _ = read_delimited(content, len(_PROTOBUF), len(content))
        return dict(_pair(value) for field, value in read_fields(message) if field == _PAIR)
    except MalformedProtobuf as cause:
        raise corrupt(path, offset, str(cause)) from cause


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
