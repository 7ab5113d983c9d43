"""Cells for writing: keys and values laid out as the content of data blocks."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hfile.layout import (
    CELL_VERSION,
    CONTENT_OFFSET,
    KEY_BYTES_MAX,
    KEY_EXTRA_BYTES,
    KEY_SUFFIX,
)
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
