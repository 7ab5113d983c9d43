"""HFiles are written as Java writes them, whatever the entries and however they are handed over."""

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.bloom import build_bloom, parse_bloom
from lakewarden.engine.formats.hfile import HFile, HFileWriter, write_hfile
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.engine.formats.hfile.java_files import (
    base_files,
    is_native,
    log_files,
    tables_with_base_files,
)
from tests.engine.formats.hfile.plain_reader import (
    Entry,
    PlainBlock,
    plain_blocks,
    plain_entries,
    plain_trailer,
)

# Hudi's default block size for metadata tables; with it every golden file has one block.
JAVA_BLOCK_BYTES = 1 << 20
# What the trailer says of offsets depends on how well the blocks were packed.
OFFSET_FIELDS = {1, 2}

entries_in_order = st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=40))).map(
    lambda entries: sorted(entries, key=lambda entry: entry[0])
)


def written(
    entries: list[Entry], *, is_packed: bool = False, block_bytes: int = 100, cut: int = 0
) -> bytes:
    """A file of entries that are appended in two parts."""
    sink = io.BytesIO()
    writer = HFileWriter(
        sink,
        schema_text='"bytes"',
        created_ms=7,
        codec="gzip" if is_packed else "none",
        block_bytes=block_bytes,
    )
    for part in (entries[:cut], entries[cut:]):
        writer.append(
            pa.array([key for key, _ in part], pa.binary()),
            pa.array([value for _, value in part], pa.large_binary()),
        )
    writer.close()
    return sink.getvalue()


def data_blocks(content: bytes) -> list[PlainBlock]:
    return [block for block in plain_blocks(content) if block.kind == b"DATABLK*"]


def without_index(content: bytes) -> list[PlainBlock]:
    return [block for block in plain_blocks(content) if block.kind != b"IDXROOT2"]


def check_like_java(content: bytes, *, is_base_file: bool) -> None:
    """Write the entries of a file by Java again, and compare all that packing does not change."""
    file = HFile(BufferSource(content), "java.hfile")
    entries = file.entries()
    key_filter = None
    if is_base_file:
        text = file.meta("bloomFilter") or b""
        row_entries = parse_bloom(text, "DYNAMIC_V0", "java.hfile").row_entries
        key_filter = build_bloom(entries.keys, entries=row_entries)
    ours = write_hfile(
        entries.keys,
        entries.values,
        schema_text=file.schema_text,
        created_ms=int.from_bytes(file.info("hfile.CREATE_TIME_TS") or b"", "big"),
        key_filter=key_filter,
        block_bytes=JAVA_BLOCK_BYTES,
    )
    assert without_index(ours) == without_index(content)
    theirs, own = plain_trailer(content), plain_trailer(ours)
    assert list(own) == list(theirs)
    assert {field: own[field] for field in own if field not in OFFSET_FIELDS} == {
        field: theirs[field] for field in theirs if field not in OFFSET_FIELDS
    }


@pytest.mark.parametrize("table", tables_with_base_files())
def test_base_files_are_written_as_java_writes_them(table: str) -> None:
    for content in filter(is_native, base_files(table).values()):
        check_like_java(content, is_base_file=True)


def test_log_blocks_are_written_as_java_writes_them() -> None:
    for content in log_files("mor_metadata_services").values():
        check_like_java(content, is_base_file=False)


@settings(deadline=None)
@given(entries_in_order, st.booleans(), st.integers(1, 300))
def test_what_is_written_is_read(entries: list[Entry], is_packed: bool, block_bytes: int) -> None:
    content = written(entries, is_packed=is_packed, block_bytes=block_bytes)
    assert plain_entries(content) == entries
    assert plain_trailer(content)[7] == len(entries)


@settings(deadline=None)
@given(entries_in_order, st.data())
def test_parts_give_the_same_file_as_the_whole(entries: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    assert written(entries, cut=cut) == written(entries)


@settings(deadline=None)
@given(entries_in_order, st.integers(1, 120))
def test_blocks_are_cut_as_java_cuts_them(entries: list[Entry], block_bytes: int) -> None:
    sizes: list[int] = []
    last_key = None
    for key, value in entries:
        # The rule of the Java writer, as it stands in its append method.
        if key != last_key and (not sizes or sizes[-1] + len(key) + len(value) + 9 > block_bytes):
            sizes.append(0)
        sizes[-1] += len(key) + len(value) + 21
        last_key = key
    content = written(entries, block_bytes=block_bytes)
    assert [len(block.content) for block in data_blocks(content)] == sizes


def test_many_megabytes_are_one_file() -> None:
    entries = [(b"%06d" % number, bytes(number % 900)) for number in range(40_000)]
    content = written(entries, block_bytes=1 << 16, cut=777)
    assert plain_entries(content) == entries
    sizes = [len(block.content) for block in data_blocks(content)]
    assert min(sizes[:-1]) > (1 << 16) - 1000
    assert max(sizes) <= (1 << 16) + 12


def test_a_repeated_key_fills_one_block() -> None:
    entries = [(b"a", b"1"), *((b"b", bytes(50)) for _ in range(20)), (b"c", b"1")]
    blocks = data_blocks(written(entries, block_bytes=1, cut=9))
    assert [block.content.count(b"b\0\x7f") for block in blocks] == [0, 20, 0]


def test_a_file_without_entries() -> None:
    content = write_hfile(
        pa.array([], pa.string()),
        pa.array([], pa.binary()),
        schema_text='"bytes"',
        created_ms=0,
        key_filter=build_bloom(pa.array([], pa.string())),
    )
    file = HFile(BufferSource(content), "empty.hfile")
    assert (file.entry_count, len(file.entries())) == (0, 0)
    assert file.info("hfile.LASTKEY") == file.info("minRecordKey") == b""
    assert plain_trailer(content)[9] == (1 << 64) - 1


def test_text_keys_are_ordered_by_their_bytes() -> None:
    keys = sorted(["a", "é", "\ufffd", "\U0001f600"], key=str.encode)
    content = write_hfile(pa.array(keys), pa.array([b""] * 4), schema_text='"bytes"', created_ms=0)
    assert [key.decode() for key, _ in plain_entries(content)] == keys


def test_checksum_slots_are_empty() -> None:
    content = written([(b"a", bytes(40_000))])
    assert [block.checksums for block in plain_blocks(content)][:2] == [bytes(12), bytes(4)]


@pytest.mark.parametrize("cut", [0, 1])
def test_unsorted_keys_are_refused(cut: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        written([(b"\xff", b""), (b"a", b"")], cut=cut)
    assert refused.value.code == "unsorted_keys"


def test_a_key_too_long_for_its_length_is_refused() -> None:
    assert plain_entries(written([(bytes(32_767), b"")])) == [(bytes(32_767), b"")]
    with pytest.raises(InvalidRequest) as refused:
        written([(bytes(32_768), b"")])
    assert refused.value.code == "entry_too_long"


def test_null_keys_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        write_hfile(pa.array([None, "a"]), pa.array([b"", b""]), schema_text="", created_ms=0)
    assert refused.value.code == "null_key"


def test_keys_without_values_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        write_hfile(pa.array(["a"]), pa.array([], pa.binary()), schema_text="", created_ms=0)
    assert refused.value.code == "uneven_entries"


def test_another_codec_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        HFileWriter(io.BytesIO(), schema_text="", created_ms=0, codec="zstd")  # type: ignore[arg-type]
    assert refused.value.code == "unsupported_hfile_codec"
