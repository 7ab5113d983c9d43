"""One-record container files: readable by all, verbatim in their schema, total on bad bytes."""

import contextlib
import io
import json
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.avro.container import (
    MAXIMUM_INFLATED_BYTES,
    is_whole_container,
    plain_container,
    read_container,
    write_container,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.engine.formats.avro.twin import number_bytes
from tests.golden_tables import GOLDEN_FOLDER

PATH = ".hoodie/timeline/1.commit"
SCHEMA_TEXT = (
    '{"type":"record","name":"plan",  "fields":['
    '{"name":"files","type":{"type":"array","items":{"type":"string","avro.java.string":"String"}}},'
    '{"name":"extra","type":["null",{"type":"map","values":"long"}],"default":null},'
    '{"name":"version","type":["int","null"],"default":1}]}'
)
RECORD: dict[str, object] = {"files": ["a", "ü"], "extra": {"k": 2**40}, "version": 3}
WHOLE = write_container(RECORD, SCHEMA_TEXT)
MARKER = b"0123456789abcdef"


def container(
    datum: bytes,
    schema: str = SCHEMA_TEXT,
    records: int = 1,
    codec: bytes | None = None,
    extra: bytes = b"",
) -> bytes:
    pairs = [(b"avro.schema", schema.encode())] + ([(b"avro.codec", codec)] if codec else [])
    header = number_bytes(len(pairs)) + b"".join(
        number_bytes(len(part)) + part for pair in pairs for part in pair
    )
    block = number_bytes(records) + number_bytes(len(datum)) + datum
    return b"Obj\x01" + header + b"\x00" + MARKER + block + MARKER + extra


DATUM = b"\x02\x02a\x00\x00\x00\x06"


def golden_containers() -> Iterator[tuple[str, bytes]]:
    for name in ("mor_metadata_services", "cow_restore", "v8_cow_services_by_102"):
        with zipfile.ZipFile(GOLDEN_FOLDER / f"{name}.zip") as archive:
            for member in archive.namelist():
                content = archive.read(member)
                if content.startswith(b"Obj\x01"):
                    yield f"{name}:{member}", content


GOLDEN = dict(golden_containers())


def test_a_record_comes_back_as_it_was() -> None:
    assert read_container(WHOLE, PATH) == RECORD


def test_missing_fields_take_their_defaults() -> None:
    assert read_container(write_container({"files": []}, SCHEMA_TEXT), PATH) == {
        "files": [],
        "extra": None,
        "version": 1,
    }


def test_others_read_what_we_write() -> None:
    reader = fastavro.reader(io.BytesIO(WHOLE))
    assert list(reader) == [RECORD]


def test_the_header_has_the_schema_as_it_is_and_nothing_else() -> None:
    size = number_bytes(len(SCHEMA_TEXT.encode()))
    expected = b"Obj\x01\x02\x16avro.schema" + size + SCHEMA_TEXT.encode() + b"\x00"
    assert WHOLE.startswith(expected)


def test_equal_records_give_equal_bytes() -> None:
    assert write_container(RECORD, SCHEMA_TEXT) == WHOLE
    assert write_container({**RECORD, "version": 4}, SCHEMA_TEXT)[-16:] != WHOLE[-16:]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_by_java_is_read_like_fastavro_reads_it_and_written_alike(name: str) -> None:
    content = GOLDEN[name]
    reader = fastavro.reader(io.BytesIO(content))
    (expected,) = reader
    assert read_container(content, name) == expected
    schema = reader.metadata["avro.schema"]
    # Only the marker between blocks differs: Java's is random.
    again = write_container(expected, schema)
    assert again.replace(again[-16:], content[-16:]) == content


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_other_writers_are_read(codec: str) -> None:
    written = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(SCHEMA_TEXT))
    fastavro.writer(written, schema, [RECORD], codec=codec)
    assert read_container(written.getvalue(), PATH) == RECORD


def test_a_small_record_is_unpacked_for_the_archive_and_any_other_file_stays_as_it_is() -> None:
    packed = write_container(RECORD, SCHEMA_TEXT, deflated_from=0)
    assert packed != WHOLE
    assert plain_container(packed, PATH, bytes_max=1 << 10) == WHOLE
    for payload, bytes_max in ((packed, 4), (WHOLE, 1 << 10), (packed[:-1], 1 << 10), (b"", 1)):
        assert plain_container(payload, PATH, bytes_max=bytes_max) == payload


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_container(container(DATUM, codec=b"snappy"), PATH)
    assert (caught.value.code, caught.value.codec) == ("unsupported_codec", "snappy")


def test_a_record_that_does_not_fit_is_refused() -> None:
    for record in ({"files": [1]}, {"files": "a", "version": "x"}, {}):
        with pytest.raises(InvalidRequest) as caught:
            write_container(record, SCHEMA_TEXT)
        assert caught.value.code == "record_does_not_fit"


RECURSIVE = '{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}'
DAY = '{"type":"int","logicalType":"date"}'
DATED = f'{{"type":"record","name":"r","fields":[{{"name":"d","type":{DAY}}}]}}'


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"Obj\x01",
        b"PAR1" + WHOLE,
        WHOLE[:-1],
        WHOLE + b"\x00",
        WHOLE[:20],
        container(DATUM, records=2),
        container(DATUM, records=0),
        container(DATUM, records=-1),
        container(DATUM, extra=b"\x02\x00" + MARKER),
        container(DATUM + b"\x00"),
        container(DATUM[:-1]),
        container(DATUM[:-1] + b"\xff" * 9 + b"\x02"),
        container(number_bytes(2**60)),
        container(b"\x02\x02\xff\x00\x00\x00\x06"),
        container(DATUM, schema="{"),
        container(DATUM, schema='"int"'),
        container(number_bytes(2**31 - 1), schema=DATED),
        container(DATUM, codec=b"deflate"),
        container(DATUM, codec=b"\xff"),
        b"Obj\x01" + number_bytes(2**60),
        b"Obj\x01\x02" + number_bytes(2**60) + b"a",
        b"Obj\x01\x00" + MARKER + b"\x02\x00" + MARKER,
    ],
)
def test_a_bad_file_is_corrupt_and_named(payload: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        read_container(payload, PATH)
    assert caught.value.path == PATH


def test_a_record_that_contains_itself_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_container(container(b"\x02" * 100_000 + b"\x00", schema=RECURSIVE), PATH)
    assert caught.value.code == "unsupported_recursive_schema"


def test_a_block_that_inflates_without_end_is_corrupt_in_bounded_memory() -> None:
    packer = zlib.compressobj(1, wbits=-15)
    zeros = b"\x00" * (MAXIMUM_INFLATED_BYTES >> 8)
    bomb = b"".join(packer.compress(zeros) for _ in range(257)) + packer.flush()
    tracemalloc.start()
    with pytest.raises(CorruptTable):
        read_container(container(bomb, codec=b"deflate"), PATH)
    assert tracemalloc.get_traced_memory()[1] < 1 << 30
    tracemalloc.stop()


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=9))
def test_a_damaged_file_is_a_record_or_refused(place: int, patch: bytes) -> None:
    payload = (WHOLE[:place] + patch + WHOLE[place + len(patch) :])[: len(WHOLE)]
    with contextlib.suppress(CorruptTable, InvalidRequest):
        assert isinstance(read_container(payload, PATH), dict)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_cut_file_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptTable):
        read_container(WHOLE[:length], PATH)


@given(st.binary(max_size=200))
def test_any_bytes_behind_a_good_header_are_a_record_or_corrupt(datum: bytes) -> None:
    try:
        found = read_container(container(datum), PATH)
    except CorruptTable:
        return
    assert set(found) == {"files", "extra", "version"}


def test_a_file_is_whole_with_its_last_byte_and_not_before() -> None:
    assert is_whole_container(WHOLE)
    assert not any(is_whole_container(WHOLE[:size]) for size in range(len(WHOLE)))
