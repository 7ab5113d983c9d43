"""Delete blocks: the keys a write removed, and the ordering values that say how far it reaches."""

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.decode import decode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.formats.log.delete_items import plain_bounds
from lakewarden.engine.formats.log.delete_schema import (
    ARRAY_WRAPPER,
    DELETE_LIST_SCHEMA,
    DELETE_RECORD_SCHEMA,
    INT_WRAPPER,
)
from lakewarden.engine.kernel.errors import InvalidRequest

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
