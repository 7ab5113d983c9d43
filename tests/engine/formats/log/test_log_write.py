"""Log blocks are written as Java writes them, and read back as they were meant."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Block, BlockKind, Header, rolled_back_instant
from lakewarden.engine.formats.log.deletes import DELETE_LIST_SCHEMA, Deletes, deletes
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.formats.log.write import (
    BlockOrigin,
    Positions,
    avro_blocks,
    decode_positions,
    delete_block,
    encode_block,
    hfile_block,
    parquet_block,
    rollback_block,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.engine.formats.log.frames import FIRST_DELETE_BLOCK, frame, golden_logs

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "n", "type": ["null", "long"], "default": None},
        ],
    }
)
ROWS = pa.table({"id": ["a", "bb", "ccc"], "n": [1, None, 3]})
INSTANT = "20260101000000000"
ORIGIN = BlockOrigin(INSTANT, SCHEMA)


def only(content: bytes) -> Block:
    (block,) = read_blocks(content, "a.log")
    return block


def deletes_of(
    keys: list[str], *ordering: pa.Array, unconditional: list[bool] | None = None
) -> Deletes:
    flags = unconditional or [not ordering] * len(keys)
    partitions = pa.array(["p=a"] * len(keys), pa.string())
    return Deletes(pa.array(keys, pa.string()), partitions, ordering, np.array(flags, dtype=bool))


def test_a_block_is_laid_out_as_the_format_says():
    written = encode_block(BlockKind.AVRO, {Header.INSTANT_TIME: INSTANT}, b"con", b"tent")
    assert written == frame(3, {0: INSTANT}, b"content")


def test_the_first_block_of_a_metadata_file_group_is_javas():
    assert delete_block(deletes_of([]), BlockOrigin("00000000000000001")) == FIRST_DELETE_BLOCK


def test_rows_survive_an_avro_block():
    block = only(b"".join(avro_blocks(ROWS, ORIGIN)))
    assert (block.kind, block.instant, block.schema_text) == (BlockKind.AVRO, INSTANT, SCHEMA)
    assert records(block).to_pylist() == ROWS.to_pylist()


def test_a_table_without_rows_needs_no_block():
    assert list(avro_blocks(ROWS.slice(0, 0), ORIGIN)) == []


def test_a_full_block_is_followed_by_another():
    # The records take 4 + 1 + 1 + 2, 4 + 1 + 2 + 1 and 4 + 1 + 3 + 2 bytes.
    blocks = [only(content) for content in avro_blocks(ROWS, ORIGIN, bytes_max=16)]
    assert [records(block).column("id").to_pylist() for block in blocks] == [["a", "bb"], ["ccc"]]


def test_a_record_larger_than_a_block_gets_its_own():
    blocks = [only(content) for content in avro_blocks(ROWS, ORIGIN, bytes_max=1)]
    assert [records(block).num_rows for block in blocks] == [1, 1, 1]


def test_positions_go_with_their_records():
    positions = Positions("20250101000000000", np.array([4, 7, 1 << 33]))
    blocks = [
        only(content) for content in avro_blocks(ROWS, ORIGIN, positions=positions, bytes_max=16)
    ]
    key = Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS
    assert {block.headers[key] for block in blocks} == {"20250101000000000"}
    texts = [block.headers[Header.RECORD_POSITIONS] for block in blocks]
    assert decode_positions(texts[0], 2, "a.log").tolist() == [4, 7]
    assert decode_positions(texts[1], 1, "a.log").tolist() == [1 << 33]


def test_compacted_and_partial_blocks_say_so():
    origin = BlockOrigin(INSTANT, SCHEMA, compacted_instants=("1", "2"), is_partial=True)
    block = only(b"".join(avro_blocks(ROWS, origin)))
    assert block.compacted_instants == ("1", "2")
    assert block.is_partial


def test_rows_survive_a_parquet_block():
    block = only(parquet_block(ROWS, ORIGIN))
    assert block.kind is BlockKind.PARQUET
    assert records(block).to_pylist() == ROWS.to_pylist()
    assert pq.read_table(io.BytesIO(block.content)).equals(ROWS)


def test_an_hfile_becomes_a_block_as_it_is():
    block = only(hfile_block(b"an hfile", ORIGIN))
    assert (block.kind, bytes(block.content)) == (BlockKind.HFILE, b"an hfile")


def test_a_rollback_names_its_target():
    block = only(rollback_block(BlockOrigin("2"), "1"))
    assert (block.kind, block.instant) == (BlockKind.COMMAND, "2")
    assert rolled_back_instant(block) == "1"


def test_unconditional_deletes_are_the_integer_zero():
    block = only(delete_block(deletes_of(["TXN-002"]), BlockOrigin(INSTANT)))
    expected = b"\x02\x02\x0eTXN-002\x02\x06p=a\x04\x00\x00"
    assert bytes(block.content[8:]) == expected


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        (pa.array([7, -1], pa.int32()), None),
        (pa.array([2**40, -1]), None),
        (pa.array([0.5, -1.0], pa.float32()), None),
        (pa.array([0.5, -1.0]), None),
        (pa.array(["x", "é"]), None),
        (pa.array([b"\x00", b"\xff"]), None),
        (pa.array([True, False]), None),
        (pa.array([Decimal("1.50"), Decimal("-2.25")]), pa.decimal128(30, 15)),
        (pa.array([date(1970, 1, 3), date(2026, 1, 2)]), pa.int32()),
        (pa.array([datetime(2026, 1, 2, tzinfo=UTC)] * 2, pa.timestamp("ms", "UTC")), pa.int64()),
        (pa.array([1, 2], pa.int64()).cast(pa.time64("us")), None),
    ],
)
def test_ordering_values_survive_a_delete_block(column: pa.Array, stored: pa.DataType | None):
    block = only(delete_block(deletes_of(["a", "b"], column), ORIGIN))
    found = deletes(block)
    assert found.keys.to_pylist() == ["a", "b"]
    assert not found.is_unconditional.any()
    expected = column
    if pa.types.is_timestamp(column.type):
        expected = column.cast(pa.timestamp("us", "UTC"))
    assert found.ordering[0].equals(expected.cast(stored) if stored else expected)


def test_real_and_unconditional_deletes_mix():
    written = deletes_of(["a", "b"], pa.array([5, 6]), unconditional=[True, False])
    found = deletes(only(delete_block(written, ORIGIN)))
    assert found.is_unconditional.tolist() == [True, False]
    assert found.ordering[0].to_pylist() == [None, 6]


def test_a_missing_ordering_value_is_unconditional():
    for kind in (pa.int32(), pa.int64()):
        written = deletes_of(["a", "b"], pa.array([None, 6], kind))
        found = deletes(only(delete_block(written, ORIGIN)))
        assert found.is_unconditional.tolist() == [True, False]


def test_several_ordering_fields_survive_a_delete_block():
    columns = (pa.array([1, 2, 3]), pa.array(["x", None, "z"]), pa.array([4, 5, 6]))
    written = deletes_of(["a", "b", "c"], *columns, unconditional=[False, False, True])
    found = deletes(only(delete_block(written, ORIGIN)))
    assert [column.to_pylist() for column in found.ordering] == [
        [1, 2, None],
        ["x", None, None],
        [4, 5, None],
    ]


def test_a_type_without_wrapper_is_refused():
    with pytest.raises(InvalidRequest) as caught:
        delete_block(deletes_of(["a"], pa.array([[1]])), ORIGIN)
    assert caught.value.code == "unsupported_ordering_type"


@given(st.lists(st.tuples(st.text(), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))))
def test_delete_blocks_read_as_another_library_reads_them(pairs: list[tuple[str, int | None]]):
    values = pa.array([value for _, value in pairs], pa.int64())
    block = only(delete_block(deletes_of([key for key, _ in pairs], values), ORIGIN))
    schema = fastavro.parse_schema(json.loads(DELETE_LIST_SCHEMA))
    decoded = fastavro.schemaless_reader(io.BytesIO(block.content[8:]), schema, None)
    items = decoded["deleteRecordList"]
    assert [item["recordKey"] for item in items] == [key for key, _ in pairs]
    assert [item["orderingVal"]["value"] for item in items] == [value or 0 for _, value in pairs]


@pytest.mark.parametrize("table", ["mor_deletes", "mor_event_time_two_fields", "mor_all_types"])
def test_golden_log_files_are_written_again_byte_for_byte(table: str):
    for path, content in golden_logs(table):
        if "/.hoodie/" not in path:
            written = [written_again(block) for block in read_blocks(content, path)]
            assert b"".join(written) == content


def written_again(block: Block) -> bytes:
    """The block from its decoded contents, with its headers in the order Java gave them."""
    origin = BlockOrigin(block.instant, block.headers.get(Header.SCHEMA))
    if block.kind is BlockKind.DELETE:
        encoded = delete_block(deletes(block), origin)
    else:
        (encoded,) = avro_blocks(records(block), origin)
    content = only(encoded).content
    return encode_block(block.kind, block.headers, content)


def test_rows_of_many_bytes_become_several_blocks():
    large = 17 << 20
    rows = ROWS.set_column(0, ROWS.field(0), pa.array([letter * large for letter in "abc"]))
    positions = Positions("20250101000000000", np.array([4, 7, 9]))
    blocks = [only(content) for content in avro_blocks(rows, ORIGIN, positions=positions)]
    assert [records(block).column(0).to_pylist()[0][0] for block in blocks] == ["a", "b", "c"]
    texts = [block.headers[Header.RECORD_POSITIONS] for block in blocks]
    assert [decode_positions(text, 1, "a.log").tolist() for text in texts] == [[4], [7], [9]]
