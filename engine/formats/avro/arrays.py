"""Arrow arrays put together from numpy values."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.formats.avro.window import Mask

_Scalar = TypeVar("_Scalar", bound=np.generic)


def bitmap(used: Mask | None) -> pa.Buffer | None:
    """Arrow's form of the rows that hold a value; `None` if all do."""
    return None if used is None else pa.py_buffer(np.packbits(used, bitorder="little"))


def plain_array(
    type_: pa.DataType, used: Mask | None, values: npt.NDArray[np.generic], length: int
) -> pa.Array:
    """An array of a type of fixed width; rows not in use are null, whatever their value."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, length, [bitmap(used), buffer])


def raw(values: pa.Array, dtype: type[_Scalar], width: int) -> npt.NDArray[_Scalar]:
    """The values of a type of fixed width as rows of numbers; those for nulls are arbitrary."""
    if not len(values):
        # Arrow need not keep a buffer for no values, whatever their offset.
        return np.zeros((0, width), dtype)
    begin = np.dtype(dtype).itemsize * width * values.offset
    numbers = np.frombuffer(values.buffers()[1], dtype, len(values) * width, begin)
    return numbers.reshape(-1, width)


def first_invalid(values: pa.Array) -> int | None:
    """The first row whose value is not allowed in its type; `None` if all are."""
    if _is_valid(values):
        return None
    return next((row for row in range(len(values)) if not _is_valid(values.slice(row, 1))), 0)


def _is_valid(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
