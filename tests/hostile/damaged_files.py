"""Damaged files: every kind of file that a table has, cut, flipped, emptied, or made to unfold.

All of them are small and come out the same each time.
"""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.hfile import write_hfile
from lakewarden.engine.formats.hfile.blocks import TRAILER_SIZE
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.log.block import BlockKind, Header
from lakewarden.engine.formats.log.write import (
    BlockOrigin,
    avro_blocks,
    encode_block,
    parquet_block,
)
from lakewarden.engine.formats.properties import format_properties

MEGABYTE = 1 << 20
DAMAGES_OF_EACH = 20
INSTANT = "20260101000000000"
ROWS_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "row",
        "fields": [{"name": "id", "type": "string"}, {"name": "v", "type": ["null", "long"]}],
    }
)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that something is wrong with; one that unfolds can't be read by anybody."""

    name: str
    kind: str
    content: bytes
    is_bomb: bool = False


def damaged_files() -> Iterator[Damaged]:
    """All of them."""
    for kind, content in whole_files().items():
        yield from _cut(kind, content)
    yield from _bombs()


def whole_files() -> dict[str, bytes]:
    """One sound file of each kind."""
    return {
        "commit": _commit(),
        "commit_json": _commit_json(),
        "hfile": _hfile(),
        "log": _log(),
        "parquet": _parquet(_rows(200)),
        "properties": format_properties({"hoodie.table.name": "t", "a.b": "c\u00e9"}, "a comment"),
        "ledger": json.dumps({"format": 1, "kind": "cancelled", "partitions": ["p"]}).encode(),
    }


def _cut(kind: str, content: bytes) -> Iterator[Damaged]:
    chance = random.Random(kind)
    for number in range(DAMAGES_OF_EACH):
        at, name = chance.randrange(1, len(content)), f"{kind} {number}"
        match number % 4:
            case 0:
                yield Damaged(f"{name} cut at {at}", kind, content[:at])
            case 1:
                flipped = bytearray(content)
                flipped[at] ^= 1 << chance.randrange(8)
                yield Damaged(f"{name} flipped at {at}", kind, bytes(flipped))
            case 2:
                zeros = bytes(min(64, len(content) - at))
                filled = content[:at] + zeros + content[at + len(zeros) :]
                yield Damaged(f"{name} zeros at {at}", kind, filled)
            case _:
                doubled = content[:at] + content[at // 2 :]
                yield Damaged(f"{name} spliced at {at}", kind, doubled)


def _bombs() -> Iterator[Damaged]:
    bomb = partial(Damaged, is_bomb=True)
    for size in (20, 60, 255):
        yield bomb(f"deflated {size} MB of zeros", "commit", _deflated_zeros(size))
    for size in (17, 40, 80):
        yield bomb(f"hfile block of {size} MB", "hfile", _unfolding_hfile(size))
    yield bomb("hfile with 110 blocks of 1 MB", "hfile", _unfolding_hfile(1, 110))
    for codec in ("zstandard", "snappy", "bzip2", "xz"):
        yield bomb(f"container packed with {codec}", "commit", _container("{}", b"x", codec))
    for count in (10, 100_000, 2**31 - 1, 2**40, 2**62):
        for item in ('"null"', '{"type":"fixed","name":"f","size":0}', _EMPTY_RECORD, '"long"'):
            yield bomb(f"array of {count} x {item}", "commit", _array_of(item, count))
    for items in (1, 16, 60):
        yield bomb(f"{items} MB of tiny records", "commit", _tiny_records(items * MEGABYTE))
        yield bomb(f"{items} MB of tiny maps", "commit", _tiny_maps(items * MEGABYTE))
        yield bomb(f"{items} MB of empty texts", "commit", _tiny_texts(items * MEGABYTE))
    for depth in (101, 900, 5_000, 100_000):
        yield bomb(f"schema {depth} deep", "schema", _deep_schema(depth))
        yield bomb(f"arrays {depth} deep", "schema", _deep_arrays(depth))
    for depth in (100_000, 1_000_000):
        yield bomb(f"json {depth} deep", "commit_json", b'{"a":' * depth + b"1" + b"}" * depth)
    for width in (18, 60):
        yield bomb(f"schema that doubles {width} times", "schema", _doubling_schema(width))
    for length in (2**31 - 1, -1, 2**62, -(2**62)):
        yield bomb(f"text of {length}", "commit", _container(_TEXT, _long(length) + b"x"))
        yield bomb(f"log block of {length}", "log", b"#HUDI#" + struct.pack(">q", length) + b"x")
        yield bomb(f"log content of {length}", "log", _log_with_content_length(length))
    for count in (2**31 - 1, -1, 1_000_000):
        yield bomb(f"log of {count} records", "log", _avro_block(struct.pack(">ii", 3, count)))
        yield bomb(f"log of {count} headers", "log", _log_with_headers(count))
        yield bomb(f"deletes of {count}", "log", _delete_block(count))
    yield bomb("log record that unfolds", "log", _unfolding_record())
    yield bomb("number of 5,000 digits", "commit_json", b'{"version":' + b"9" * 5_000 + b"}")
    yield bomb("half a character", "commit_json", b'{"operationType":"\\ud800"}')
    for number in range(12):
        yield bomb(f"hfile trailer {number}", "hfile", _hfile_with_trailer(number))
    for number in range(8):
        yield bomb(f"parquet footer {number}", "parquet", _parquet_with_footer(number))
    yield Damaged("2,000,000 equal rows in parquet", "parquet", _parquet(_equal_rows(2_000_000)))
    yield bomb("bloom filter of 2^31 bits", "bloom", struct.pack(">iibi", -1, 1, 1, 2**31 - 1))
    yield bomb("bloom filter of 2^31 rows", "bloom", _bloom_of_rows(2**31 - 1))


_EMPTY_RECORD = '{"type":"record","name":"e","fields":[]}'
_TEXT = '{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'


def _rows(count: int) -> pa.Table:
    ids = [f"key-{number:05}" for number in range(count)]
    return pa.table({"id": ids, "v": pa.array(range(count), pa.int64())})


def _equal_rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(["same"] * count).dictionary_encode()})


def _parquet(table: pa.Table) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, store_schema=False)
    return sink.getvalue()


def _commit() -> bytes:
    stats = tuple(
        WriteStat(file_id=f"f{number}-0", path=f"p/f{number}-0_0-0-1_{INSTANT}.parquet")
        for number in range(5)
    )
    return commit.encode(CommitMetadata(partition_to_write_stats={"p": stats}))


def _commit_json() -> bytes:
    stat = {"fileId": "f-0", "path": "p/f", "numWrites": 3}
    return json.dumps({"partitionToWriteStats": {"p": [stat]}, "version": 1}).encode()


def _hfile(size: int = 20) -> bytes:
    keys = pa.array([f"key-{number:05}".encode() for number in range(300)], pa.large_binary())
    values = pa.array([b"v" * size] * 300, pa.large_binary())
    return write_hfile(keys, values, schema_text=ROWS_SCHEMA, created_ms=0, block_bytes=1024)


def _log() -> bytes:
    origin = BlockOrigin(INSTANT, ROWS_SCHEMA)
    blocks = list(avro_blocks(_rows(50), origin))
    return b"".join([*blocks, parquet_block(_rows(50), origin)])


def _long(value: int) -> bytes:
    folded = (value << 1) ^ (value >> 63)
    octets = bytearray()
    while folded > 0x7F:
        octets.append(folded & 0x7F | 0x80)
        folded >>= 7
    octets.append(folded)
    return bytes(octets)


def _container(schema: str, datum: bytes, codec: str = "null") -> bytes:
    pairs = b"".join(
        _long(len(part)) + part
        for part in (b"avro.schema", schema.encode(), b"avro.codec", codec.encode())
    )
    marker = b"m" * 16
    head = b"Obj\x01" + _long(2) + pairs + _long(0) + marker
    return head + _long(1) + _long(len(datum)) + datum + marker


def _deflated(*parts: tuple[bytes, int]) -> bytes:
    """Some bytes, each so many times, without ever having them all in memory."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = []
    for part, count in parts:
        chunk = part * max(MEGABYTE // len(part), 1)
        whole, rest = divmod(count * len(part), len(chunk))
        packed += [packer.compress(chunk) for _ in range(whole)]
        packed.append(packer.compress(chunk[:rest]))
    return b"".join([*packed, packer.flush()])


def _deflated_zeros(megabytes: int) -> bytes:
    return _container(_TEXT, _deflated((b"\0", megabytes * MEGABYTE)), "deflate")


def _array(item: str) -> str:
    field = {"name": "a", "type": {"type": "array", "items": json.loads(item)}}
    return json.dumps({"type": "record", "name": "r", "fields": [field]})


def _array_of(item: str, count: int) -> bytes:
    return _container(_array(item), _long(count) + b"\x01")


def _many(schema: str, item: bytes, count: int) -> bytes:
    datum = _deflated((_long(count), 1), (item, count), (b"\0", 1))
    return _container(schema, datum, "deflate")


def _tiny_records(count: int) -> bytes:
    record = '{"type":"record","name":"e","fields":[{"name":"b","type":"boolean"}]}'
    return _many(_array(record), b"\0", count)


def _tiny_maps(count: int) -> bytes:
    return _many(_array('{"type":"map","values":"int"}'), b"\0", count)


def _tiny_texts(count: int) -> bytes:
    return _many(_array('"string"'), b"\0", count)


def _deep_schema(depth: int) -> bytes:
    inner = '"int"'
    begin = "".join(
        f'{{"type":"record","name":"r{number}","fields":[{{"name":"a","type":'
        for number in range(depth)
    )
    return (begin + inner + "}]}" * depth).encode()


def _deep_arrays(depth: int) -> bytes:
    arrays = '{"type":"array","items":' * depth + '"int"' + "}" * depth
    return f'{{"type":"record","name":"r","fields":[{{"name":"a","type":{arrays}}}]}}'.encode()


def _doubling_schema(width: int) -> bytes:
    fields = [{"name": "f0", "type": {"type": "record", "name": "r0", "fields": []}}]
    for number in range(1, width):
        pair = [{"name": side, "type": f"r{number - 1}"} for side in "ab"]
        record = {"type": "record", "name": f"r{number}", "fields": pair}
        fields.append({"name": f"f{number}", "type": record})
    return json.dumps({"type": "record", "name": "r", "fields": fields}).encode()


def _unfolding_hfile(megabytes: int, values: int = 1) -> bytes:
    """An HFile of some values, each in a block of its own, which are nothing but zeros."""
    keys = pa.array([b"k%05d" % number for number in range(values)], pa.large_binary())
    contents = pa.array([bytes(megabytes * MEGABYTE)], pa.large_binary()).take([0] * values)
    return write_hfile(keys, contents, schema_text=ROWS_SCHEMA, created_ms=0, block_bytes=1024)


def _hfile_with_trailer(number: int) -> bytes:
    """A trailer in which one number after the other is as large as can be."""
    sound = _hfile()
    huge = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    trailer = b'TRABLK"$'
    message = b"".join(
        bytes([field << 3]) + (huge if field == number + 1 else b"\x01") for field in range(1, 13)
    )
    whole = trailer + bytes([len(message) & 0x7F | 0x80, len(message) >> 7]) + message
    return sound[:-TRAILER_SIZE] + whole.ljust(TRAILER_SIZE - 4, b"\0") + b"\0\0\0\x03"


def _block(kind: BlockKind, content: bytes) -> bytes:
    headers = {Header.INSTANT_TIME: INSTANT, Header.SCHEMA: ROWS_SCHEMA}
    return encode_block(kind, headers, content)


def _avro_block(content: bytes) -> bytes:
    return _block(BlockKind.AVRO, content)


def _delete_block(count: int) -> bytes:
    return _block(BlockKind.DELETE, struct.pack(">ii", 3, 12) + _long(count).ljust(12, b"\0"))


def _unfolding_record() -> bytes:
    """A few bytes that stand for very many nulls."""
    wide = [{"name": f"n{number}", "type": ["null", "long"]} for number in range(2_000)]
    item = {"type": "record", "name": "wide", "fields": wide}
    field = {"name": "a", "type": {"type": "array", "items": ["null", item]}}
    schema = json.dumps({"type": "record", "name": "r", "fields": [field]})
    items = 200_000
    datum = _long(items) + b"\0" * items + b"\0"
    content = struct.pack(">iii", 3, 1, len(datum)) + datum
    headers = {Header.INSTANT_TIME: INSTANT, Header.SCHEMA: schema}
    return encode_block(BlockKind.AVRO, headers, content)


def _log_with_content_length(length: int) -> bytes:
    sound = bytearray(_block(BlockKind.AVRO, b"content"))
    at = bytes(sound).index(struct.pack(">q", 7))
    sound[at : at + 8] = struct.pack(">q", length)
    return bytes(sound)


def _log_with_headers(count: int) -> bytes:
    sound = bytearray(_block(BlockKind.AVRO, b"content"))
    sound[22:26] = struct.pack(">i", count)
    return bytes(sound)


def _parquet_with_footer(number: int) -> bytes:
    """A footer in which numbers and lengths are as large as can be, one place after the other."""
    content = bytearray(_parquet(_rows(20)))
    (length,) = struct.unpack("<i", content[-8:-4])
    if number == 0:
        content[-8:-4] = struct.pack("<i", 2**31 - 1)
    elif number == 1:
        content[-8:-4] = struct.pack("<i", -1)
    else:
        start = len(content) - 8 - length
        at = start + (number - 1) * length // 9
        content[at : at + 9] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    return bytes(content)


def _bloom_of_rows(rows: int) -> bytes:
    frame = struct.pack(">iibi", -1, 1, 1, 64)
    return frame + struct.pack(">iii", 10, 1, rows) + frame + bytes(8)
