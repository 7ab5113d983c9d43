"""The bytes behind Arrow strings: one buffer and where each value begins and ends in it."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest

Octets = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


def large_binary(values: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
    """Strings or binaries of any kind as one array of bytes; nulls are refused."""
    if values.null_count:
        raise InvalidRequest(
            "null_key",
            what=f"There are {values.null_count} nulls among {len(values)} keys.",
            why="A key identifies a record, so it has a value.",
            now="Fill the nulls, or drop the rows.",
        )
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return whole.cast(pa.large_binary())


def octets_of(values: pa.LargeBinaryArray) -> tuple[Octets, Offsets]:
    """The buffer, and one offset more than there are values."""
    _, offsets, octets = values.buffers()
    if not len(values):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(octets or b"", np.uint8), bounds
