"""Avro log records: a block of 200,000, to and from Arrow columns, against fastavro."""

import io
import json
import struct
from dataclasses import dataclass
from functools import cached_property

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measure import OURS, Measure, clocked, faster, in_turns
from bench.workloads import FIRST_TS, hex_texts, order_rows
from lakewarden.engine.formats.avro.arrow_types import avro_schema, record_names
from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema

ROWS = 200_000
NULLS = 0.05
COLUMNS_WITH_NULLS = ("city", "price", "note")
SHAPE = f"{ROWS:,} records, 10 nullable fields, 5 % nulls in 3"


def run() -> list[Measure]:
    """Decode and encode the same block, each checked against the peer's answer."""
    block = _Block(_rows())
    return [_decode(block), _encode(block)]


@dataclass
class _Block:
    """Rows, and what both sides need to turn them into a block."""

    table: pa.Table

    @cached_property
    def schema_text(self) -> str:
        return avro_schema(self.table.schema, *record_names("bench"))

    @cached_property
    def fast_schema(self) -> object:
        return fastavro.parse_schema(json.loads(self.schema_text))

    @cached_property
    def content(self) -> bytes:
        return self.encoded_by_fastavro()

    def encoded(self) -> bytes:
        schema = parse_schema(self.schema_text, "bench")
        return encode_records(self.table, schema, length_prefixed=True).content.to_pybytes()

    def decoded(self) -> pa.Table:
        schema = parse_schema(self.schema_text, "bench")
        starts, ends = split_length_prefixed(self.content, ROWS, "bench")
        return decode_records(self.content, starts, ends, schema, "bench")

    def encoded_by_fastavro(self) -> bytes:
        block = io.BytesIO()
        for row in self.table.to_pylist():
            record = io.BytesIO()
            fastavro.schemaless_writer(record, self.fast_schema, row)
            block.write(struct.pack(">i", record.tell()))
            block.write(record.getbuffer())
        return block.getvalue()

    def decoded_by_fastavro(self) -> pa.Table:
        block, rows = io.BytesIO(self.content), []
        for _ in range(ROWS):
            block.seek(4, io.SEEK_CUR)
            rows.append(fastavro.schemaless_reader(block, self.fast_schema, None))
        return pa.Table.from_pylist(rows, schema=self.table.schema)


def _decode(block: _Block) -> Measure:
    assert block.decoded().equals(block.decoded_by_fastavro())
    peer = "fastavro.schemaless_reader per record"
    return faster(
        f"decode an Avro block: {SHAPE}",
        in_turns({OURS: clocked(block.decoded), peer: clocked(block.decoded_by_fastavro)}),
        peer,
        at_least=15,
        includes="splitting the block; both end with Arrow columns",
    )


def _encode(block: _Block) -> Measure:
    assert block.encoded() == block.content
    peer = "fastavro.schemaless_writer per record"
    return faster(
        f"encode an Avro block: {SHAPE}",
        in_turns({OURS: clocked(block.encoded), peer: clocked(block.encoded_by_fastavro)}),
        peer,
        at_least=30,
        includes="length prefixes; both begin with Arrow columns and end with the block's bytes",
    )


def _rows() -> pa.Table:
    random = np.random.default_rng(7)
    table = order_rows(random, hex_texts(random, ROWS, 36, dashes=True), FIRST_TS)
    for name in COLUMNS_WITH_NULLS:
        missing = pa.array(random.random(ROWS) < NULLS)
        place = table.column_names.index(name)
        values = pc.if_else(missing, pa.scalar(None, table[name].type), table[name])
        table = table.set_column(place, name, values)
    return table
