"""Encoding delete records: keys with their ordering values in the wrappers that Java expects.

Dates go out as days and timestamps as microseconds in plain integers: that is what Spark compares
them with. An unconditional delete is the integer 0.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.delete_schema import (
    ARRAY_WRAPPER,
    DELETE_LIST_SCHEMA,
    INT_WRAPPER,
)
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.kernel.errors import InvalidRequest

_WRAPPERS: dict[pa.DataType, tuple[str, pa.DataType]] = {
    pa.bool_(): ("BooleanWrapper", pa.bool_()),
    pa.int8(): (INT_WRAPPER, pa.int32()),
    pa.int16(): (INT_WRAPPER, pa.int32()),
    pa.int32(): (INT_WRAPPER, pa.int32()),
    pa.int64(): ("LongWrapper", pa.int64()),
    pa.float32(): ("FloatWrapper", pa.float32()),
    pa.float64(): ("DoubleWrapper", pa.float64()),
    pa.binary(): ("BytesWrapper", pa.binary()),
    pa.large_binary(): ("BytesWrapper", pa.binary()),
    pa.string(): ("StringWrapper", pa.string()),
    pa.large_string(): ("StringWrapper", pa.string()),
    pa.date32(): (INT_WRAPPER, pa.int32()),
    pa.time64("us"): ("TimeMicrosWrapper", pa.time64("us")),
}
_DECIMAL = pa.decimal128(30, 15)


def encode_deletes(deletes: Deletes) -> pa.Buffer:
    """The Avro bytes of a list of delete records."""
    records = pa.StructArray.from_arrays(
        [deletes.keys, deletes.partitions, _ordering(deletes)],
        names=["recordKey", "partitionPath", "orderingVal"],
    )
    everything = pa.ListArray.from_arrays(pa.array([0, len(records)], pa.int32()), records)
    schema = parse_schema(DELETE_LIST_SCHEMA, "delete records")
    table = pa.table({"deleteRecordList": everything})
    return encode_records(table, schema, length_prefixed=False).content


def _ordering(deletes: Deletes) -> pa.StructArray:
    """A column per wrapper in use; each record fills one of them."""
    real = ~deletes.is_unconditional
    if not deletes.ordering:
        return _union({INT_WRAPPER: _wrapper(_zeros(len(deletes)), real | True)})
    if len(deletes.ordering) > 1:
        tuples = _wrapper(_tuples(deletes.ordering), real, "wrappedValues")
        return _union({INT_WRAPPER: _wrapper(_zeros(len(deletes)), ~real), ARRAY_WRAPPER: tuples})
    name, values = _wrapped(deletes.ordering[0])
    real = real & np.asarray(values.is_valid())
    if name == INT_WRAPPER:
        return _union({name: _wrapper(pc.if_else(pa.array(real), values, 0), real | True)})
    defaults = _wrapper(_zeros(len(deletes)), ~real)
    return _union({INT_WRAPPER: defaults, name: _wrapper(values, real)})


def _tuples(columns: Sequence[pa.Array]) -> pa.ListArray:
    """For each record a list of its wrapped values, one per column."""
    count, width = len(columns[0]), len(columns)
    by_wrapper: dict[str, list[tuple[int, pa.Array]]] = {}
    for place, column in enumerate(columns):
        name, values = _wrapped(column)
        by_wrapper.setdefault(name, []).append((place, values))
    children = {}
    for name, members in by_wrapper.items():
        source = np.full((count, width), -1)
        for turn, (place, _) in enumerate(members):
            source[:, place] = np.arange(count) + turn * count
        picked = pa.array(source.ravel(), mask=source.ravel() < 0)
        values = pa.concat_arrays([values for _, values in members]).take(picked)
        children[name] = _wrapper(values, np.asarray(values.is_valid()))
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, _union(children))


def _wrapped(column: pa.Array) -> tuple[str, pa.Array]:
    """The wrapper for a column's values, and the values as it holds them."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return "DecimalWrapper", column.cast(_DECIMAL)
    if pa.types.is_timestamp(kind):
        microseconds = column.cast(pa.timestamp("us", kind.tz), safe=False)
        return "LongWrapper", microseconds.cast(pa.int64())
    if kind not in _WRAPPERS:
        raise InvalidRequest(
            "unsupported_ordering_type",
            what=f"An ordering field has the type {kind}.",
            why="A delete block has no wrapper for such a value.",
            now="Order by a number, a text, a date or a timestamp.",
            type=str(kind),
        )
    name, stored = _WRAPPERS[kind]
    return name, column.cast(stored)


def _zeros(count: int) -> pa.Array:
    return pa.array(np.zeros(count, dtype=np.int32))


def _wrapper(values: pa.Array, used: np.ndarray, field: str = "value") -> pa.StructArray:
    return pa.StructArray.from_arrays([values], names=[field], mask=pa.array(~used))


def _union(children: dict[str, pa.StructArray]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(children.values()), names=list(children))
