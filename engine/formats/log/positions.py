"""Record positions: the base file rows a block's records belong to, as a 64-bit roaring bitmap."""

import base64
import binascii
from array import array

import numpy as np
from pyroaring import BitMap64

from lakewarden.engine.kernel.errors import corrupt

_INT64_MAX = (1 << 63) - 1


def decode_positions(text: str, count: int, path: str) -> np.ndarray:
    """The positions in ascending order, as int64; there must be `count` of them.

    They are counted before they are expanded, since a bitmap of a few bytes can stand for billions.
    """
    bitmap = _parse(text, path)
    if len(bitmap) != count:
        raise corrupt(path, None, f"There are {len(bitmap)} positions of {count} records.")
    if count and bitmap.max() > _INT64_MAX:
        raise corrupt(path, None, "A record position is negative.")
    return np.array(bitmap.to_array(), dtype=np.int64)


def _parse(text: str, path: str) -> BitMap64:
    try:
        payload = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise corrupt(path, None, "The record positions are not Base64 text.") from None
    try:
        bitmap = BitMap64.deserialize(payload)
    except (ValueError, IndexError) as error:
        raise corrupt(path, None, f"The record positions are no roaring bitmap: {error}.") from None
    # The library ignores what follows a bitmap.
    if len(bitmap.serialize()) != len(payload):
        raise corrupt(path, None, "The record positions have bytes behind their end.")
    return bitmap


def encode_positions(positions: np.ndarray) -> str:
    """The header text for positions, which must be ascending, unique and not negative."""
    ordered = np.ascontiguousarray(positions, dtype=np.int64)
    assert not len(ordered) or (ordered[0] >= 0 and bool(np.all(np.diff(ordered) > 0)))
    # An array of machine words is taken at once; numpy's are converted one by one.
    bitmap = BitMap64(array("Q", ordered.tobytes()))
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode("ascii")
