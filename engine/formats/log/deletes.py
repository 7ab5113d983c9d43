"""Delete blocks: the keys a write removed, and the ordering values that say how far it reaches.

The Avro schema of delete records: a key, its partition, and a wrapped ordering value.

The order of the wrappers is their number in the file. `ArrayWrapper` holds the values of several
ordering fields, each wrapped in turn.

Encoding delete records: keys with their ordering values in the wrappers that Java expects.

Dates go out as days and timestamps as microseconds in plain integers: that is what Spark compares
them with. An unconditional delete is the integer 0.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.decode import decode_records
from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.kernel.errors import InvalidRequest

_NAMESPACE = "org.apache.hudi.avro.model"
_TEXT = {"type": "string", "avro.java.string": "String"}
_WRAPPED: dict[str, object] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": _TEXT,
    "DateWrapper": {"type": "int", "logicalType": "date"},
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": {"type": "long", "logicalType": "timestamp-micros"},
}


def _record(name: str, *fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _optional(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": ["null", kind], "default": None}


def _wrapper(name: str, kind: object) -> dict[str, object]:
    return _record(name, {"name": "value", "type": kind})


def _array_wrapper() -> dict[str, object]:
    date = _wrapper("LocalDateWrapper", {"type": "int", "logicalType": "date"})
    items = ["null", *_WRAPPED, date]
    return _record("ArrayWrapper", _optional("wrappedValues", {"type": "array", "items": items}))


def _delete_record() -> dict[str, object]:
    wrappers = [_wrapper(name, kind) for name, kind in _WRAPPED.items()]
    ordering = ["null", *wrappers, _array_wrapper()]
    return {
        **_record(
            "HoodieDeleteRecord",
            _optional("recordKey", _TEXT),
            _optional("partitionPath", _TEXT),
            {"name": "orderingVal", "type": ordering, "default": None},
        ),
        "namespace": _NAMESPACE,
    }


# The union branches in file order; the first is null, and the last inside an array is a date.
INT_WRAPPER = "IntWrapper"
ARRAY_WRAPPER = "ArrayWrapper"
BRANCHES = ("null", *_WRAPPED, ARRAY_WRAPPER)
ARRAY_BRANCHES = ("null", *_WRAPPED, "LocalDateWrapper")
DELETE_RECORD_SCHEMA = json.dumps(_delete_record())
DELETE_LIST_SCHEMA = json.dumps(
    _record(
        "HoodieDeleteRecordList",
        {"name": "deleteRecordList", "type": {"type": "array", "items": _delete_record()}},
    )
)


DELETE_BLOCK_VERSION = 3
_HEAD = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class Deletes:
    """Deleted keys in block order, with one ordering column per ordering field.

    An unconditional delete has no real ordering value: it removes whatever came before it. A block
    of nothing else has no ordering columns at all.
    """

    keys: pa.Array
    partitions: pa.Array
    ordering: tuple[pa.Array, ...]
    is_unconditional: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)


def deletes(block: Block) -> Deletes:
    """The delete records of a delete block; the serialisations before release 0.13 are refused."""
    content = block.content
    if len(content) < _HEAD.size:
        raise block.corrupt("The delete block ends before its version and length.")
    version, size = _HEAD.unpack_from(content)
    if version in (1, 2):
        raise InvalidRequest(
            "unsupported_delete_block",
            what=f"{block.path} has a delete block of version {version} at byte {block.offset}.",
            why="Its keys are serialised Java objects, and only Java reads those.",
            now="Compact the table with the engine that wrote it.",
            path=block.path,
            version=version,
        )
    if version != DELETE_BLOCK_VERSION or size != len(content) - _HEAD.size:
        raise block.corrupt(f"The delete block's version {version} or length {size} is wrong.")
    keys, partitions, wrapped = _records(block)
    if keys.null_count:
        raise block.corrupt("A delete record has no record key.")
    return Deletes(keys, partitions, *_ordering(wrapped, block))


def _records(block: Block) -> list[pa.Array]:
    """Keys, partitions and wrapped ordering values."""
    content, path, origin = block.content, block.path, block.content_offset
    bounds = plain_bounds(bytes(content), _HEAD.size)
    if bounds is not None:
        schema = parse_schema(DELETE_RECORD_SCHEMA, path)
        records = decode_records(content, *bounds, schema, path, origin=origin)
        return [column.combine_chunks() for column in records.columns]
    start, end = np.array([_HEAD.size]), np.array([len(content)])
    schema = parse_schema(DELETE_LIST_SCHEMA, path)
    lists = decode_records(content, start, end, schema, path, origin=origin)
    return list(lists.column(0).combine_chunks().flatten().flatten())


def _ordering(wrapped: pa.StructArray, block: Block) -> tuple[tuple[pa.Array, ...], np.ndarray]:
    """The typed ordering columns, and which records have none; the integer 0 means none."""
    default = _flags(pc.equal(_values(wrapped, INT_WRAPPER), 0)) | _flags(wrapped.is_null())
    if default.all():
        return (), default
    real = pc.if_else(pa.array(default), pa.scalar(None, wrapped.type), wrapped)
    arrays = pc.struct_field(real, ARRAY_WRAPPER)
    if arrays.null_count == len(arrays):
        return (_typed(real, block),), default
    lists = pc.struct_field(arrays, "wrappedValues")
    counts = pc.unique(pc.list_value_length(lists.filter(pa.array(~default)))).to_pylist()
    if len(counts) != 1 or not counts[0]:
        raise block.corrupt("Delete records have different numbers of ordering values.")
    columns = (pc.list_element(lists, place) for place in range(counts[0]))
    return tuple(_typed(column, block) for column in columns), default


def _typed(wrapped: pa.StructArray, block: Block) -> pa.Array:
    """The values of a union of wrappers as one column, of a type that holds them all."""
    names = [name for name in wrapped.type.names if name != ARRAY_WRAPPER]
    columns = [_values(wrapped, name) for name in names]
    used = [column for column in columns if column.null_count < len(column)]
    if len(used) > 1:
        used = [column.cast(_wide_type(column.type, block)) for column in used]
    if len({column.type for column in used}) > 1:
        used = [column.cast(pa.float64(), safe=False) for column in used]
    return pc.coalesce(*used) if used else pa.nulls(len(wrapped), pa.int32())


def _wide_type(kind: pa.DataType, block: Block) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    raise InvalidRequest(
        "unsupported_delete_ordering",
        what=f"{block.path} has a delete block with ordering values of several types.",
        why="Values of different types have no order.",
        now="Compact the table with the engine that wrote it.",
        path=block.path,
    )


def _values(wrapped: pa.StructArray, branch: str) -> pa.Array:
    return pc.struct_field(wrapped, [branch, "value"])


def _flags(booleans: pa.BooleanArray) -> np.ndarray:
    return np.asarray(booleans.fill_null(False), dtype=bool)


_NUMBERS = {
    "IntWrapper",
    "LongWrapper",
    "DateWrapper",
    "TimeMicrosWrapper",
    "TimestampMicrosWrapper",
}
# A union's branch n is written as the zigzag number 2n.
_NUMBER_BRANCHES = frozenset(2 * place for place, name in enumerate(BRANCHES) if name in _NUMBERS)
_NULL_BRANCH = 0
_TEXT_BRANCH = 2
_MORE = 0x80


def plain_bounds(octets: bytes, start: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Starts and ends of the records of an array at `start`, or None if they are not all plain."""
    try:
        count, cursor = _size(octets, start)
        starts = []
        for _ in range(count):
            starts.append(cursor)
            # The key, then the partition.
            for _ in range(2):
                if octets[cursor] != _TEXT_BRANCH:
                    return None
                size, cursor = _size(octets, cursor + 1)
                cursor += size
            branch = octets[cursor]
            cursor += 1
            if branch in _NUMBER_BRANCHES:
                while octets[cursor] >= _MORE:
                    cursor += 1
                cursor += 1
            elif branch != _NULL_BRANCH:
                return None
    except (IndexError, ValueError):
        return None
    # An array ends with an empty block, and one without items is nothing else.
    if octets[cursor:] != (b"\0" if count else b""):
        return None
    bounds = np.array([*starts, cursor], dtype=np.int64)
    return bounds[:-1], bounds[1:]


def _size(octets: bytes, cursor: int) -> tuple[int, int]:
    """A length or count of up to four bytes, and where it ends."""
    value = shift = 0
    for place in range(cursor, cursor + 4):
        value |= (octets[place] & 0x7F) << shift
        if octets[place] < _MORE:
            if value & 1:
                raise ValueError("negative")
            return value >> 1, place + 1
        shift += 7
    raise ValueError("too large")


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
        [deletes.keys, deletes.partitions, _ordering_union(deletes)],
        names=["recordKey", "partitionPath", "orderingVal"],
    )
    everything = pa.ListArray.from_arrays(pa.array([0, len(records)], pa.int32()), records)
    schema = parse_schema(DELETE_LIST_SCHEMA, "delete records")
    table = pa.table({"deleteRecordList": everything})
    return encode_records(table, schema, length_prefixed=False).content


def _ordering_union(deletes: Deletes) -> pa.StructArray:
    """A column per wrapper in use; each record fills one of them."""
    real = ~deletes.is_unconditional
    if not deletes.ordering:
        return _union({INT_WRAPPER: _wrapper_column(_zeros(len(deletes)), real | True)})
    if len(deletes.ordering) > 1:
        tuples = _wrapper_column(_tuples(deletes.ordering), real, "wrappedValues")
        return _union(
            {INT_WRAPPER: _wrapper_column(_zeros(len(deletes)), ~real), ARRAY_WRAPPER: tuples}
        )
    name, values = _wrapped(deletes.ordering[0])
    real = real & np.asarray(values.is_valid())
    if name == INT_WRAPPER:
        return _union({name: _wrapper_column(pc.if_else(pa.array(real), values, 0), real | True)})
    defaults = _wrapper_column(_zeros(len(deletes)), ~real)
    return _union({INT_WRAPPER: defaults, name: _wrapper_column(values, real)})


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
        children[name] = _wrapper_column(values, np.asarray(values.is_valid()))
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


def _wrapper_column(values: pa.Array, used: np.ndarray, field: str = "value") -> pa.StructArray:
    return pa.StructArray.from_arrays([values], names=[field], mask=pa.array(~used))


def _union(children: dict[str, pa.StructArray]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(children.values()), names=list(children))
