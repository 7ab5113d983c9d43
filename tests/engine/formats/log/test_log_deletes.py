"""Delete blocks give keys and typed ordering values, or say what is wrong with them."""

import io
import json
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import DELETE_RECORD_SCHEMA, deletes
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.engine.formats.log.frames import FIRST_DELETE_BLOCK, frame, golden_logs

NAMESPACE = "org.apache.hudi.avro.model."
LIST_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {"type": "array", "items": json.loads(DELETE_RECORD_SCHEMA)},
            }
        ],
    }
)

Wrapped = tuple[str, dict[str, object]] | None


def wrapped(kind: str, value: object) -> Wrapped:
    return f"{NAMESPACE}{kind}Wrapper", {"value": value}


def several(*values: Wrapped) -> Wrapped:
    return f"{NAMESPACE}ArrayWrapper", {"wrappedValues": list(values)}


def datum(*orderings: Wrapped) -> bytes:
    """What another Avro library makes of delete records with these ordering values."""
    items = [
        {"recordKey": f"k{number}", "partitionPath": "p=a", "orderingVal": value}
        for number, value in enumerate(orderings)
    ]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, LIST_SCHEMA, {"deleteRecordList": items})
    return out.getvalue()


def block_of(content: bytes) -> Block:
    (block,) = read_blocks(frame(1, {0: "20260101000000000"}, content), "a.log")
    return block


def delete_block(encoded: bytes, version: int = 3) -> Block:
    return block_of(struct.pack(">ii", version, len(encoded)) + encoded)


def orderings(*values: Wrapped) -> list[list[object]]:
    return [column.to_pylist() for column in deletes(delete_block(datum(*values))).ordering]


def test_the_first_block_of_a_metadata_file_group_deletes_nothing():
    (block,) = read_blocks(FIRST_DELETE_BLOCK, "a.log")
    assert len(deletes(block)) == 0


def test_a_record_written_by_java_is_read():
    found = deletes(delete_block(b"\x02\x02\x0eTXN-002\x02\x12region=us\x04\x00\x00"))
    assert found.keys.to_pylist() == ["TXN-002"]
    assert found.partitions.to_pylist() == ["region=us"]
    assert found.is_unconditional.tolist() == [True]
    assert found.ordering == ()


def test_zero_and_null_mean_unconditional():
    found = deletes(delete_block(datum(wrapped("Int", 0), None, wrapped("Int", 1))))
    assert found.is_unconditional.tolist() == [True, True, False]
    assert [column.to_pylist() for column in found.ordering] == [[None, None, 1]]


def test_a_long_zero_is_a_real_value():
    assert not deletes(delete_block(datum(wrapped("Long", 0)))).is_unconditional.any()


@pytest.mark.parametrize(
    ("kind", "value", "arrow"),
    [
        ("Boolean", True, pa.bool_()),
        ("Int", 7, pa.int32()),
        ("Long", 2**40, pa.int64()),
        ("Float", 0.5, pa.float32()),
        ("Double", 1.25, pa.float64()),
        ("Bytes", b"\x00\xff", pa.binary()),
        ("String", "é", pa.string()),
        ("Date", date(2026, 1, 2), pa.date32()),
        ("Decimal", Decimal("-1.500000000000000"), pa.decimal128(30, 15)),
        ("TimeMicros", time(1, 2, 3), pa.time64("us")),
        ("TimestampMicros", datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC")),
    ],
)
def test_ordering_values_keep_their_type(kind: str, value: object, arrow: pa.DataType):
    found = deletes(delete_block(datum(wrapped("Int", 0), wrapped(kind, value))))
    (column,) = found.ordering
    assert column.type == arrow
    assert column.to_pylist()[0] is None
    assert column.to_pylist()[1] == value
    assert found.is_unconditional.tolist() == [True, False]


def test_several_ordering_fields_are_several_columns():
    values = (several(wrapped("Long", 1), wrapped("String", "x")), several(None, None))
    assert orderings(*values) == [[1, None], ["x", None]]


def test_several_ordering_fields_and_unconditional_deletes_mix():
    values = (wrapped("Int", 0), several(wrapped("Int", 1), wrapped("LocalDate", date(2026, 1, 2))))
    assert orderings(*values) == [[None, 1], [None, date(2026, 1, 2)]]


def test_integers_of_different_width_become_long():
    assert orderings(wrapped("Int", 1), wrapped("Long", 2**40)) == [[1, 2**40]]


def test_integers_and_floats_become_double():
    assert orderings(wrapped("Int", 1), wrapped("Float", 0.5)) == [[1.0, 0.5]]


def test_text_and_numbers_together_are_refused():
    with pytest.raises(InvalidRequest) as caught:
        orderings(wrapped("Long", 1), wrapped("String", "x"))
    assert caught.value.code == "unsupported_delete_ordering"


def test_different_numbers_of_ordering_values_are_corrupt():
    with pytest.raises(CorruptTable, match="different numbers"):
        orderings(several(wrapped("Int", 1)), several(wrapped("Int", 1), wrapped("Int", 2)))


@pytest.mark.parametrize("version", [1, 2])
def test_serialised_java_objects_are_refused_by_name(version: int):
    with pytest.raises(InvalidRequest, match=f"version {version}") as caught:
        deletes(delete_block(b"\xac\xed", version))
    assert caught.value.code == "unsupported_delete_block"


def test_an_unknown_version_is_corrupt():
    with pytest.raises(CorruptTable, match="version 4"):
        deletes(delete_block(b"\x00", version=4))


def test_a_record_without_key_is_corrupt():
    with pytest.raises(CorruptTable, match="no record key"):
        deletes(delete_block(b"\x02\x00\x00\x00\x00"))


def test_blocks_of_an_array_may_carry_their_size():
    record = b"\x02\x02a\x00\x04\x00"
    sized = b"\x01" + bytes([2 * len(record)]) + record + b"\x02" + record + b"\x00"
    assert deletes(delete_block(sized)).keys.to_pylist() == ["a", "a"]


def test_an_error_names_the_file_and_the_place():
    block = delete_block(b"\x02\x02\x0eTXN")
    with pytest.raises(CorruptTable) as caught:
        deletes(block)
    assert caught.value.path == "a.log"
    assert caught.value.offset == block.content_offset + 8 + 3


@pytest.mark.parametrize("table", ["mor_deletes", "mor_delete_marker", "v8_mor_by_102"])
def test_golden_delete_blocks_read_as_another_library_reads_them(table: str):
    for path, content in golden_logs(table):
        for block in read_blocks(content, path):
            if block.kind is BlockKind.DELETE:
                assert_as_fastavro_reads(block)


def assert_as_fastavro_reads(block: Block) -> None:
    decoded = fastavro.schemaless_reader(
        io.BytesIO(block.content[8:]), LIST_SCHEMA, None, return_record_name=True
    )
    found = deletes(block)
    items = decoded["deleteRecordList"]
    assert found.keys.to_pylist() == [item["recordKey"] for item in items]
    values = [item["orderingVal"][1]["value"] for item in items]
    if found.ordering:
        assert found.ordering[0].to_pylist() == values
    else:
        assert values == [0] * len(items)


ENCODED = datum(
    wrapped("Int", 0), None, wrapped("Long", 5), wrapped("Decimal", Decimal(1)), wrapped("Float", 1)
)


def assert_total(encoded: bytes) -> None:
    try:
        found = deletes(delete_block(encoded))
    except (CorruptTable, InvalidRequest):
        return
    assert len(found.keys) == len(found.is_unconditional)


@given(st.binary(max_size=100))
def test_random_bytes_give_deletes_or_an_error(encoded: bytes):
    assert_total(encoded)


@given(st.integers(0, len(ENCODED) - 1), st.integers(1, 255))
def test_changed_bytes_give_deletes_or_an_error(place: int, change: int):
    encoded = bytearray(ENCODED)
    encoded[place] ^= change
    assert_total(bytes(encoded))


@given(st.integers(0, len(ENCODED)))
def test_cut_bytes_give_deletes_or_an_error(size: int):
    assert_total(ENCODED[:size])
