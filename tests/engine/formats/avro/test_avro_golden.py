"""Avro log blocks by Java: read like fastavro reads them, and written again byte for byte."""

import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from lakewarden.engine.formats.avro.arrow_types import arrow_schema, avro_schema
from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from tests.golden_tables import GOLDEN_FOLDER

AVRO_BLOCK, CDC_BLOCK, HFILE_BLOCK = 3, 6, 4
SCHEMA_HEADER = 2
LOG_NAME = re.compile(r"^\.[^/]+\.log\.\d+_[^/]*(?<!\.crc)$")
METADATA = "org.apache.hudi.avro.model."
META_COLUMNS = 5


class Block(NamedTuple):
    """A block of a log file, as far as these tests need it."""

    kind: int
    schema: str
    content: bytes


@cache
def blocks() -> tuple[Block, ...]:
    """One block of every schema and table that has Avro or CDC records or metadata entries."""
    found = {}
    for archive in sorted(GOLDEN_FOLDER.glob("*.zip")):
        with zipfile.ZipFile(archive) as members:
            for name in members.namelist():
                if LOG_NAME.match(name.rpartition("/")[2]):
                    for block in _blocks_of(members.read(name)):
                        found[block.schema, len(block.content)] = block
    return tuple(found.values())


def _blocks_of(log: bytes) -> Iterator[Block]:
    position = 0
    while position < len(log):
        assert log[position : position + 6] == b"#HUDI#"
        size, _, kind, count = struct.unpack_from(">qiii", log, position + 6)
        at, headers = position + 26, {}
        for _ in range(count):
            key, length = struct.unpack_from(">ii", log, at)
            headers[key] = log[at + 8 : at + 8 + length].decode()
            at += 8 + length
        (length,) = struct.unpack_from(">q", log, at)
        yield Block(kind, headers.get(SCHEMA_HEADER, ""), log[at + 8 : at + 8 + length])
        position += 14 + size


def record_blocks() -> list[Block]:
    return [block for block in blocks() if block.kind in (AVRO_BLOCK, CDC_BLOCK)]


def _names(block: Block) -> str:
    return str(json.loads(block.schema)["name"])


def plain(value: object) -> object:
    """A value to compare: maps are dictionaries, as in fastavro, and NaN equals itself."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return {key: plain(inner) for key, inner in value}
        return [plain(inner) for inner in value]
    return "not a number" if value != value else value


@pytest.mark.parametrize("block", record_blocks(), ids=_names)
def test_a_block_is_read_like_fastavro_reads_it_and_written_alike(block: Block) -> None:
    version, count = struct.unpack_from(">ii", block.content)
    body = block.content[8:]
    schema = parse_schema(block.schema, "golden")
    starts, ends = split_length_prefixed(body, count, "golden")
    table = decode_records(body, starts, ends, schema, "golden")
    fast = fastavro.parse_schema(json.loads(block.schema))
    expected = [
        fastavro.schemaless_reader(io.BytesIO(body[start:end]), fast, None)
        for start, end in zip(starts, ends, strict=True)
    ]
    assert version == 3
    assert plain(table.to_pylist()) == plain(expected)
    assert encode_records(table, schema, length_prefixed=True).content.to_pybytes() == body


@pytest.mark.parametrize(
    "block", [block for block in record_blocks() if block.kind == AVRO_BLOCK], ids=_names
)
def test_the_schema_java_wrote_is_the_one_we_write(block: Block) -> None:
    described = json.loads(block.schema)
    columns = arrow_schema(parse_schema(block.schema, "golden"))
    meta = [
        field.with_metadata({"doc": ""}) if place < META_COLUMNS else field
        for place, field in enumerate(columns)
    ]
    assert avro_schema(pa.schema(meta), described["name"], described["namespace"]) == block.schema


def metadata_schema() -> str:
    texts = [block.schema for block in blocks() if block.kind == HFILE_BLOCK and block.schema]
    return max(texts, key=len)


LIVE = {"size": 435_000, "isDeleted": False}
STATISTICS = {
    "fileName": "f.parquet",
    "columnName": "c",
    "valueCount": 5,
    "nullCount": 0,
    "totalSize": 99,
    "totalUncompressedSize": 100,
    "isDeleted": False,
    "isTightBound": True,
    "valueType": {"typeOrdinal": 4, "additionalInfo": None},
}
LOCATION = {
    "partitionName": "p",
    "fileIdHighBits": -(2**63),
    "fileIdLowBits": 2**63 - 1,
    "fileIndex": 0,
    "fileId": "",
    "instantTime": 1_700_000_000_000,
    "fileIdEncoding": 0,
    "position": None,
}
WRAPPERS = [
    ("BooleanWrapper", True),
    ("IntWrapper", -5),
    ("LongWrapper", 2**40),
    ("FloatWrapper", 0.5),
    ("DoubleWrapper", -1e99),
    ("BytesWrapper", b"\x00\xff"),
    ("StringWrapper", "ü"),
    ("DateWrapper", 20_000),
    ("TimestampMicrosWrapper", 10**15),
    ("LocalDateWrapper", -1),
    (
        "ArrayWrapper",
        [(METADATA + "IntWrapper", {"value": 1}), None, (METADATA + "IntWrapper", {"value": 2})],
    ),
]


def wrapped(name: str, value: object) -> tuple[str, dict[str, object]]:
    field = "wrappedValues" if name == "ArrayWrapper" else "value"
    return METADATA + name, {field: value}


def metadata_records() -> list[dict[str, object]]:
    files = {f"file-{place}.parquet": LIVE for place in range(200)}
    ranges = [
        {"minValue": wrapped(name, value), "maxValue": wrapped(*WRAPPERS[place - 1])}
        for place, (name, value) in enumerate(WRAPPERS)
    ]
    return [
        {"key": "", "type": 2, "filesystemMetadata": files},
        {"key": "", "type": 1, "filesystemMetadata": {}},
        {"key": "", "type": 5, "recordIndexMetadata": LOCATION},
        {"key": "", "type": 7, "SecondaryIndexMetadata": {"isDeleted": True}},
        *({"key": "", "type": 3, "ColumnStatsMetadata": {**STATISTICS, **one}} for one in ranges),
    ]


@pytest.mark.parametrize("repeats", [1, 20])
def test_metadata_records_with_all_their_wrappers_are_read_and_written(repeats: int) -> None:
    text = metadata_schema()
    fast = fastavro.parse_schema(json.loads(text))
    datums, expected = [], []
    for row in metadata_records() * repeats:
        written = io.BytesIO()
        fastavro.schemaless_writer(written, fast, row)
        datums.append(written.getvalue())
        expected.append(fastavro.schemaless_reader(io.BytesIO(datums[-1]), fast, None))
    places = np.cumsum([0, *map(len, datums)], dtype=np.int64)
    content, schema = b"".join(datums), parse_schema(text, "golden")
    table = decode_records(content, places[:-1], places[1:], schema, "golden")
    assert [unwrapped(plain(row)) for row in table.to_pylist()] == expected
    assert encode_records(table, schema, length_prefixed=False).content.to_pybytes() == content


def unwrapped(row: object) -> object:
    """Unions with only their filled branch left, as fastavro gives them."""
    if isinstance(row, list):
        return [unwrapped(one) for one in row]
    if not isinstance(row, dict):
        return row
    if row and all(key.endswith("Wrapper") for key in row):
        return next(unwrapped(one) for one in row.values() if one is not None)
    if row.get("filesystemMetadata", None) == []:
        return {**row, "filesystemMetadata": {}}
    return {key: unwrapped(one) for key, one in row.items()}
