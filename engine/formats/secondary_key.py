"""Keys of secondary indexes: the column's value and the record key, escaped, with `$` between.

Both are escaped by a backslash before each backslash, `$` and NUL. A value that is null is one NUL
without a backslash before it.
"""

from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.kernel.errors import CorruptTable, corrupt

_NULL = "\0"
_SEPARATOR = "$"
_ESCAPED = r"([\\$\x00])"
_SPECIAL = (b"\\", b"$", b"\0")
# The value as it stands in the key, and the record key. Only escaped `$` may be in the value.
_PARTS = r"(?s)^(?P<value>(?:[^\\$]|\\.)*)\$(?P<key>.*)$"


class HashInput(Enum):
    """What of a key is hashed to find its file group; the index definition's version says it."""

    WHOLE_KEY = "V1"
    VALUE = "V2"


def secondary_keys(values: pa.StringArray, record_keys: pa.StringArray) -> pa.StringArray:
    """The index keys of some records, whose column values may be null."""
    return pc.binary_join_element_wise(secondary_prefixes(values), _escape(record_keys), "")


def secondary_prefixes(values: pa.StringArray) -> pa.StringArray:
    """What the index keys of all records with a value begin with."""
    return pc.binary_join_element_wise(pc.fill_null(_escape(values), _NULL), _SEPARATOR, "")


def split_secondary_keys(keys: pa.StringArray, path: str) -> tuple[pa.StringArray, pa.StringArray]:
    """The column values, null ones included, and the record keys of index keys."""
    parts = _parts(keys, path)
    values = parts.field("value")
    is_null = pc.equal(values, _NULL)
    return pc.if_else(is_null, None, _unescape(values)), _unescape(parts.field("key"))


def secondary_group_index(
    keys: pa.StringArray, count: int, hash_input: HashInput, path: str
) -> npt.NDArray[np.int64]:
    """For each index key the number of its file group among `count`."""
    if hash_input is HashInput.VALUE:
        keys = pc.binary_join_element_wise(_parts(keys, path).field("value"), _SEPARATOR, "")
    return file_group_index(keys, count)


def _parts(keys: pa.StringArray, path: str) -> pa.StructArray:
    parts = pc.extract_regex(keys, _PARTS)
    if parts.null_count:
        raise _no_secondary_key(path)
    return parts


def _no_secondary_key(path: str) -> CorruptTable:
    return corrupt(path, None, "A key of a secondary index has no separator.")


def _escape(strings: pa.StringArray) -> pa.StringArray:
    if not _has_special(strings):
        return strings
    return pc.replace_substring_regex(strings, _ESCAPED, r"\\\1")


def _has_special(strings: pa.StringArray) -> bool:
    """Whether one of the bytes to escape stands in any text; nearly always none does."""
    if not len(strings):
        return False
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[strings.offset :]
    content = strings.buffers()[2]
    if content is None:
        return False
    octets = content.slice(int(offsets[0]), int(offsets[len(strings)] - offsets[0])).to_pybytes()
    return any(special in octets for special in _SPECIAL)


def _unescape(strings: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(strings, r"(?s)\\(.)", r"\1")
