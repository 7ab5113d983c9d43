"""Buckets: the number that a bucket index gives a key, which is the file group it belongs to.

The number is Java's hash of the list of the hashed fields' values, without its sign, by the count
of buckets; a file group's id begins with it, in eight digits. The values are taken out of the
record key, as Java does it: that shows where a value has commas and colons of its own.
"""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import java_string_hash
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.table.keygen.key_scheme import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER

_DIGITS = 8
_FACTOR = 31
_INT_MAX = 0x7FFFFFFF
_PLACEHOLDERS = (NULL_PLACEHOLDER, EMPTY_PLACEHOLDER)


def bucket_numbers(keys: pa.Array, buckets: Buckets) -> npt.NDArray[np.int64]:
    """The bucket of each record key."""
    return bucket_hashes(keys, buckets) % buckets.count


def bucket_hashes(keys: pa.Array, buckets: Buckets) -> npt.NDArray[np.int64]:
    """The number of each record key that its bucket is the rest of, whatever their count."""
    hashes = _of_lists([keys])
    is_composite = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    composite = np.flatnonzero(np.asarray(is_composite))
    if len(composite):
        hashes[composite] = _of_composites(keys.take(pa.array(composite)), buckets)
    return hashes & _INT_MAX


def bucket_of(file_id: str) -> int | None:
    """The bucket that a file group's id tells; None for ids that no bucket index has given."""
    digits = file_id[:_DIGITS]
    is_bucket = len(digits) == _DIGITS and digits.isascii() and digits.isdecimal()
    return int(digits) if is_bucket else None


def bucket_file_id(bucket: int, fresh: str) -> str:
    """The id of a new file group for a bucket, made from a fresh UUID."""
    return f"{bucket:0{_DIGITS}d}{fresh[_DIGITS:]}-0"


def hashed_values(key: str, buckets: Buckets) -> list[str]:
    """The values in a composite key that are hashed; the key itself if it has none of them."""
    values = [value for name, value in _pairs(key) if name in buckets.fields]
    return ["" if value in _PLACEHOLDERS else value for value in values] or [key]


def _pairs(key: str) -> Iterator[tuple[str, str]]:
    """The `name:value` pairs of a composite key.

    A value ends at the last comma before the next colon that has a comma before it.
    """
    start = 0
    while start < len(key):
        colon = key.index(":", start)
        comma = key.find(",", colon)
        next_colon = key.find(":", comma) if comma >= 0 else -1
        end = key.rindex(",", colon, next_colon) if next_colon >= 0 else len(key)
        yield key[start:colon], key[colon + 1 : end]
        start = end + 1


def _of_composites(keys: pa.Array, buckets: Buckets) -> npt.NDArray[np.int64]:
    """Hashes of composite keys; only odd ones are taken apart one by one."""
    pattern = ",".join(
        f"{re.escape(name)}:(?P<value{at}>[^,:]*)" for at, name in enumerate(buckets.key_fields)
    )
    parts = pc.extract_regex(keys, f"^{pattern}$")
    hashed = [at for at, name in enumerate(buckets.key_fields) if name in buckets.fields]
    hashes = _of_lists([_plain(parts.field(f"value{at}")) for at in hashed])
    for at in np.flatnonzero(np.asarray(parts.is_null())).tolist():
        values = hashed_values(keys[at].as_py(), buckets)
        hashes[at] = _of_lists([pa.array([value]) for value in values])[0]
    return hashes


def _plain(values: pa.Array) -> pa.Array:
    """Values without placeholders: a null and an empty text both have the hash 0."""
    is_placeholder = pc.is_in(values, value_set=pa.array(_PLACEHOLDERS))
    return pc.if_else(is_placeholder, "", pc.fill_null(values, ""))


def _of_lists(columns: list[pa.Array]) -> npt.NDArray[np.int64]:
    """`List.hashCode` of each row: 31 * h + hash of the value, beginning with 1."""
    hashes = np.ones(len(columns[0]), np.int64)
    for column in columns:
        hashes = (_FACTOR * hashes + java_string_hash(column)).astype(np.int32).astype(np.int64)
    return hashes
