"""Data blocks give tables: Avro ones as another Avro library reads them, Parquet ones as stored."""

import io
import json
import math
import struct
import zipfile

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Block, BlockKind, Header
from lakewarden.engine.formats.log.reader import RecordChoice, range_source, read_blocks, records
from lakewarden.engine.formats.log.write import decode_positions
from lakewarden.engine.kernel.errors import CorruptTable, Defect
from tests.engine.formats.log.frames import frame, golden_logs
from tests.golden_tables import archive_of

SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"], "default": None},
    ],
}


def avro_content(*rows: dict[str, object], version: int = 3) -> bytes:
    parsed = fastavro.parse_schema(SCHEMA)
    content = struct.pack(">ii", version, len(rows))
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        content += struct.pack(">i", len(out.getvalue())) + out.getvalue()
    return content


def block_of(kind: BlockKind, content: bytes) -> Block:
    headers = {0: "20260101000000000", 2: json.dumps(SCHEMA)}
    (block,) = read_blocks(frame(kind, headers, content), "a.log")
    return block


def parquet_content(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def test_avro_records_become_rows():
    block = block_of(BlockKind.AVRO, avro_content({"id": "a", "n": 1}, {"id": "b", "n": None}))
    assert records(block).to_pylist() == [{"id": "a", "n": 1}, {"id": "b", "n": None}]


def test_an_avro_block_may_be_empty():
    assert records(block_of(BlockKind.AVRO, avro_content())).num_rows == 0


def test_change_records_are_read_like_avro_records():
    block = block_of(BlockKind.CDC, avro_content({"id": "a", "n": 1}))
    assert records(block).column("n").to_pylist() == [1]


def test_only_wanted_columns_are_read_and_unknown_ones_left_out():
    block = block_of(BlockKind.AVRO, avro_content({"id": "a", "n": 1}))
    assert records(block, ["n", "later"]).column_names == ["n"]


def test_parquet_records_become_rows():
    table = pa.table({"id": ["a", "b"], "n": [1, None]})
    block = block_of(BlockKind.PARQUET, parquet_content(table))
    assert records(block).equals(table)
    assert records(block, ["n", "later"]).column_names == ["n"]


@pytest.mark.parametrize("chosen", [[], [1], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("kind", [BlockKind.AVRO, BlockKind.PARQUET])
def test_a_column_chooses_the_records_that_are_read(kind: BlockKind, chosen: list[int]):
    rows = [{"id": "a", "n": 1}, {"id": "bb", "n": None}, {"id": "c", "n": 3}]
    is_avro = kind is BlockKind.AVRO
    content = avro_content(*rows) if is_avro else parquet_content(pa.Table.from_pylist(rows))
    seen: list[list[str]] = []

    def positions(table: pa.Table) -> np.ndarray:
        seen.append(table.column("id").to_pylist())
        return np.array(chosen, np.int64)

    found = records(block_of(kind, content), ["n", "id"], RecordChoice("id", positions))
    assert found.to_pylist() == [rows[at] for at in chosen]
    assert seen == [["a", "bb", "c"]]


def test_a_record_that_is_not_chosen_is_checked_all_the_same():
    content = avro_content({"id": "a", "n": 1}, {"id": "b", "n": 2})
    # The last byte is of the second record's number: one that goes on where the record ends.
    broken = content[:-1] + b"\xff"
    first = RecordChoice("id", lambda _: np.array([0], np.int64))
    with pytest.raises(CorruptTable):
        records(block_of(BlockKind.AVRO, broken), ["id", "n"], first)


def test_an_hfile_block_is_a_source_of_bytes():
    source = range_source(block_of(BlockKind.HFILE, b"0123456789"))
    assert (source.size, source.read(3, 4)) == (10, b"3456")


def test_a_delete_block_has_no_columns():
    with pytest.raises(Defect):
        records(block_of(BlockKind.DELETE, b""))


@pytest.mark.parametrize("version", [0, 4])
def test_an_unknown_data_block_version_is_corrupt(version: int):
    with pytest.raises(CorruptTable, match="no version"):
        records(block_of(BlockKind.AVRO, avro_content(version=version)))


def test_bytes_that_are_no_parquet_file_are_corrupt():
    block = block_of(BlockKind.PARQUET, b"PAR1 and nothing else PAR1")
    with pytest.raises(CorruptTable, match="Parquet") as caught:
        records(block)
    assert (caught.value.path, caught.value.offset) == ("a.log", block.content_offset)


def test_an_error_in_a_record_names_its_place_in_the_file():
    block = block_of(BlockKind.AVRO, avro_content({"id": "a", "n": 1})[:-1] + b"\xff")
    with pytest.raises(CorruptTable) as caught:
        records(block)
    assert caught.value.path == "a.log"
    assert block.content_offset < caught.value.offset < block.size_bytes


@pytest.mark.parametrize("table", ["mor_all_types", "mor_partial_updates", "mor_nbcc"])
def test_golden_avro_blocks_read_as_another_library_reads_them(table: str):
    for path, content in golden_logs(table):
        for block in read_blocks(content, path):
            if block.kind is BlockKind.AVRO:
                expected = as_fastavro_reads(block)
                assert without_pairs(records(block).to_pylist()) == without_pairs(expected)


def as_fastavro_reads(block: Block) -> list[object]:
    schema = fastavro.parse_schema(json.loads(block.schema_text))
    content = bytes(block.content)
    (count,) = struct.unpack_from(">i", content, 4)
    rows, place = [], 8
    for _ in range(count):
        (size,) = struct.unpack_from(">i", content, place)
        datum = io.BytesIO(content[place + 4 : place + 4 + size])
        rows.append(fastavro.schemaless_reader(datum, schema, None))
        place += 4 + size
    return rows


def without_pairs(value: object) -> object:
    """Arrow shows a map as a list of pairs, Avro as a dictionary; and NaN is not itself."""
    if isinstance(value, dict):
        return sorted((name, without_pairs(item)) for name, item in value.items())
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted((name, without_pairs(item)) for name, item in value)
    if isinstance(value, list):
        return [without_pairs(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def test_golden_positions_point_at_the_base_rows_of_the_same_keys():
    seen = 0
    with zipfile.ZipFile(archive_of("mor_record_positions")) as packed:
        for path, content in golden_logs("mor_record_positions"):
            for block in read_blocks(content, path):
                text = block.headers.get(Header.RECORD_POSITIONS)
                if text is not None and block.kind is BlockKind.AVRO:
                    keys = records(block, ["_hoodie_record_key"]).column(0)
                    positions = decode_positions(text, len(keys), path)
                    assert base_keys(packed, path, block).take(positions).equals(keys)
                    seen += 1
    assert seen > 0


def base_keys(packed: zipfile.ZipFile, log_path: str, block: Block) -> pa.ChunkedArray:
    instant = block.headers[Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS]
    file_id = log_path.rsplit("/", 1)[-1][1:].split("_")[0]
    (path,) = (
        name
        for name in packed.namelist()
        if name.rsplit("/", 1)[-1].startswith(f"{file_id}_")
        and name.endswith(f"_{instant}.parquet")
    )
    table = pq.read_table(io.BytesIO(packed.read(path)), columns=["_hoodie_record_key"])
    return table.column(0)


AVRO = avro_content({"id": "abc", "n": 1}, {"id": "", "n": None}, {"id": "d", "n": -(2**62)})
PARQUET = parquet_content(pa.table({"id": ["a", "b"] * 20, "n": [1, None] * 20}))


def assert_total(kind: BlockKind, content: bytes) -> None:
    try:
        table = records(block_of(kind, content))
    except CorruptTable:
        return
    assert isinstance(table.to_pylist(), list)


@given(st.integers(0, len(AVRO) - 1), st.integers(1, 255))
def test_changed_avro_bytes_give_records_or_corrupt_table(place: int, change: int):
    content = bytearray(AVRO)
    content[place] ^= change
    assert_total(BlockKind.AVRO, bytes(content))


@given(st.binary(max_size=60))
def test_random_avro_bytes_give_records_or_corrupt_table(content: bytes):
    assert_total(BlockKind.AVRO, content)


@given(st.integers(0, len(PARQUET) - 1), st.integers(1, 255))
def test_changed_parquet_bytes_give_records_or_corrupt_table(place: int, change: int):
    content = bytearray(PARQUET)
    content[place] ^= change
    assert_total(BlockKind.PARQUET, bytes(content))


@given(st.integers(0, len(PARQUET)))
def test_cut_parquet_bytes_give_records_or_corrupt_table(size: int):
    assert_total(BlockKind.PARQUET, PARQUET[:size])
