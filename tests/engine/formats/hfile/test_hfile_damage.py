"""Any bytes are read as an HFile or refused as corrupt, in bounded time and memory."""

import struct
import tracemalloc
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.hfile import HFile, write_hfile
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, LakewardenError
from tests.engine.formats.hfile.hbase_files import HBaseFile, cell, file_info, hbase_file, trailer
from tests.engine.formats.hfile.java_files import one_base_file
from tests.engine.formats.hfile.plain_reader import TRAILER_SIZE

ENTRIES = [(b"key %03d" % number, b"value %d" % number) for number in range(90)]
JAVA_FILE = one_base_file("mor_metadata_services", "column_stats")
SAMPLES = {
    "written by Java": JAVA_FILE,
    "one level": hbase_file(ENTRIES, is_packed=False),
    "three levels": hbase_file(ENTRIES, levels=3, is_packed=False),
    "three levels, packed": hbase_file(ENTRIES, levels=3),
    "many blocks": hbase_file(ENTRIES, per_block=1, is_packed=False),
    "no entries": hbase_file([], is_packed=False),
}

samples = st.sampled_from(sorted(SAMPLES)).map(SAMPLES.__getitem__)


def read_everything(content: bytes) -> None:
    """Whatever a reader can be asked for; only corrupt and unsupported files are refused."""
    asks: list[Callable[[HFile], object]] = [
        HFile.entries,
        lambda file: file.lookup([b"", b"key 010", b"key 01000", b"key 080"]),
        lambda file: file.lookup_prefixes([b"key 01", b"key 08", b"\xff"]),
        lambda file: file.matching(pa.array([b"key 080", b""], pa.large_binary())),
        lambda file: file.matching(pa.array([key for key, _ in ENTRIES], pa.large_binary())),
        lambda file: file.meta("bloomFilter"),
        lambda file: file.schema_text,
    ]
    refusals = [refusal for ask in asks if (refusal := refusal_of(ask, content))]
    assert all(refusal.parameters["path"] == "damaged.hfile" for refusal in refusals)


def refusal_of(ask: Callable[[HFile], object], content: bytes) -> LakewardenError | None:
    """The error that a question meets; any other than these two kinds fails the test."""
    try:
        ask(HFile(BufferSource(content), "damaged.hfile"))
    except CorruptTable as refusal:
        return refusal
    except InvalidRequest as refusal:
        if refusal.code != "unsupported_hfile_codec":
            raise
        return refusal
    return None


@settings(deadline=None, max_examples=400)
@given(samples, st.data())
def test_flipped_bytes(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        # Half of the hits go to trailer and indexes, which are a small part of a file.
        last = len(damaged) - TRAILER_SIZE + 120
        place = data.draw(st.integers(0, last) | st.integers(max(last - 900, 0), last))
        damaged[place] = data.draw(st.integers(0, 255))
    read_everything(bytes(damaged))


@settings(deadline=None, max_examples=100)
@given(samples, st.data())
def test_cut_files(content: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    read_everything(content[start:end])
    read_everything(content[:start] + content[end:])


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(content: bytes) -> None:
    read_everything(content)
    read_everything(content + SAMPLES["one level"][-TRAILER_SIZE:])


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 12), st.integers(0, 1 << 63) | st.integers(0, 5000)),
    samples,
)
def test_random_trailers(numbers: dict[int, int], content: bytes) -> None:
    read_everything(content[:-TRAILER_SIZE] + trailer(numbers))


def file_of(*blocks: tuple[bytes, bytes], **numbers: int) -> bytes:
    """An unpacked file of the given blocks; trailer fields are named f1, f2, ..."""
    file = HBaseFile(is_packed=False)
    for kind, content in blocks:
        file.add(kind, content)
    fields = {int(name[1:]): number for name, number in numbers.items()}
    return bytes(file.content) + trailer({6: 0, 7: 0, 8: 1, 12: 2} | fields)


def refusal(content: bytes) -> CorruptTable:
    with pytest.raises(CorruptTable) as refused:
        HFile(BufferSource(content), "damaged.hfile").entries()
    return refused.value


def test_a_block_that_unpacks_to_more_than_it_says_is_refused() -> None:
    content = bytearray(hbase_file(ENTRIES))
    content[12:16] = struct.pack(">i", struct.unpack_from(">i", content, 12)[0] - 1)
    assert "another size" in str(refusal(bytes(content)))


def test_a_block_that_claims_more_than_deflate_can_do_is_refused() -> None:
    content = bytearray(hbase_file(ENTRIES))
    content[12:16] = struct.pack(">i", 1 << 30)
    assert "claims to unpack" in str(refusal(bytes(content)))


def test_filters_of_files_with_one_value_are_read_however_many_there_are() -> None:
    """Java's have all one size, and pack nearly a thousand to one."""
    text = pa.array([b"A" * 431_328], pa.large_binary())
    keys = pa.array([b"%05d" % number for number in range(300)], pa.large_binary())
    content = write_hfile(keys, text.take([0] * 300), schema_text='"string"', created_ms=0)
    file = HFile(BufferSource(content), "filters.hfile")
    assert sum(len(some.keys) for some in file.batches()) == 300


def file_of_a_packed_block(packed: bytes, unpacked_bytes: int) -> bytes:
    framed = 33 + len(packed)
    header = struct.pack(
        ">8siiqbii", b"IDXROOT2", len(packed), unpacked_bytes, -1, 0, 16384, framed
    )
    return header + packed + trailer({1: 0, 2: 0, 5: 0, 6: 0, 7: 0, 8: 1, 12: 1})


def test_a_bomb_is_cut_off_at_the_size_it_says() -> None:
    content = file_of_a_packed_block(zlib.compress(bytes(100 << 20), 9, 31), 100)
    tracemalloc.start()
    try:
        assert "another size" in str(refusal(content))
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_packed_block_without_its_checksum_is_refused() -> None:
    content = file_of_a_packed_block(zlib.compress(b"content", 6, 31)[:-8], 7)
    assert "another size" in str(refusal(content))


@pytest.mark.parametrize("field", [1, 2, 5, 6, 7, 8])
def test_absurd_numbers_in_the_trailer_are_refused(field: int) -> None:
    sample = SAMPLES["one level"]
    numbers = {1: 0, 2: 0, 5: 0, 6: 0, 7: 0, 8: 1, 12: 2} | {field: 1 << 40}
    assert "trailer" in str(refusal(sample[:-TRAILER_SIZE] + trailer(numbers)))


def test_a_leaf_index_with_absurdly_many_entries_is_refused() -> None:
    blocks = [(b"IDXLEAF2", struct.pack(">i", (1 << 31) - 1)), (b"IDXROOT2", b"")]
    root = struct.pack(">qi", 0, 41) + b"\x03\0\x01a"
    content = file_of(
        blocks[0], (b"IDXROOT2", root), (b"IDXROOT2", b""), (b"FILEINF2", file_info([])),
        f1=41 + 33 + len(root) + 4 + 37, f2=41, f5=1, f8=2,
    )  # fmt: skip
    assert "claims to have 2147483647 entries" in str(refusal(content))


def test_index_levels_that_lead_back_to_a_block_are_refused() -> None:
    leaf = struct.pack(">iii", 1, 0, 12 + 3) + struct.pack(">qi", 0, 64) + b"\0\x01a"
    root = b"".join(struct.pack(">qi", 0, 37 + len(leaf)) + b"\x03\0\x01a" for _ in range(2))
    content = file_of(
        (b"IDXLEAF2", leaf), (b"IDXROOT2", root), (b"IDXROOT2", b""), (b"FILEINF2", file_info([])),
        f1=37 + len(leaf) + 37 + len(root) + 37, f2=37 + len(leaf), f5=2, f8=3,
    )  # fmt: skip
    assert "impossible block" in str(refusal(content))


def test_index_keys_out_of_order_are_refused() -> None:
    content = hbase_file([(b"b", b""), (b"a", b"")], per_block=1)
    assert "ascending" in str(refusal(content))


def test_a_cell_that_leaves_its_block_is_refused() -> None:
    content = bytearray(hbase_file(ENTRIES, is_packed=False))
    content[33 + 7] += 1
    assert "longer than its room" in str(refusal(bytes(content)))
    assert refusal(bytes(content)).parameters["offset"] == 0


def test_a_cell_that_leaves_one_of_many_blocks_is_refused_with_its_offset() -> None:
    entries = [(b"key %03d" % number, b"value") for number in range(300)]
    content = bytearray(hbase_file(entries, per_block=2, is_packed=False))
    place = content.index(cell(*entries[200]))
    content[place + 7] += 1
    assert refusal(bytes(content)).parameters["offset"] == place - 33


def test_a_block_of_another_size_than_in_the_index_is_refused() -> None:
    content = hbase_file(ENTRIES[:1], is_packed=False)
    size = 33 + len(cell(*ENTRIES[0])) + 4
    place = struct.pack(">qi", 0, size)
    damaged = content.replace(place, struct.pack(">qi", 0, size + 1))
    assert damaged != content
    assert "another block size" in str(refusal(damaged))


def unpacked_index_file(
    *, root: bytes = b"", meta: bytes = b"", info: bytes = file_info([]), entries: int = 0
) -> bytes:
    """A file that has nothing but what is loaded on opening, with the given contents."""
    file = HBaseFile(is_packed=False)
    for kind, content in ((b"IDXROOT2", root), (b"IDXROOT2", meta), (b"FILEINF2", info)):
        info_offset, _ = file.add(kind, content)
    counts = {5: int(bool(root)), 6: int(bool(meta)), 7: entries}
    return bytes(file.content) + trailer({1: info_offset, 2: 0, 8: 1, 12: 2} | counts)


def test_a_file_of_indexes_alone_is_empty() -> None:
    assert not len(HFile(BufferSource(unpacked_index_file()), "empty.hfile").entries())


def test_a_meta_block_before_the_file_is_refused() -> None:
    meta = struct.pack(">qi", -50, 40) + b"\x04name"
    with pytest.raises(CorruptTable, match="impossible block"):
        HFile(FileRanges(pa.BufferReader(unpacked_index_file(meta=meta))), "damaged.hfile")


@pytest.mark.parametrize("length", [b"\x05", b"\x8f\x05", b"\x87\x01", b"\xff", b"\x80"])
def test_an_index_key_with_an_impossible_length_is_refused(length: bytes) -> None:
    meta = struct.pack(">qi", 0, 40) + length + b"name"
    assert "longer than the index" in str(refusal(unpacked_index_file(meta=meta)))


@pytest.mark.parametrize("size", [b"\x00\x05", b"\xff\xff", b"\x7f\xff"])
def test_an_index_key_with_an_impossible_content_is_refused(size: bytes) -> None:
    content = hbase_file([(b"name", b"")], is_packed=False)
    key = b"\x10" + b"\x00\x04name"
    damaged = content.replace(key, b"\x06" + size + b"name", 1)
    assert damaged != content
    assert "longer than its room" in str(refusal(damaged))


def test_an_index_with_too_few_entries_is_refused() -> None:
    meta = struct.pack(">qi", 0, 40)
    assert "fewer entries" in str(refusal(unpacked_index_file(meta=meta)))


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (b"", "not in the form"),
        (b"PBUF", "varint"),
        (b"PBUF\x7f\x0a\x00", "longer than what holds it"),
        (b"PBUF\x02\x0a\x05", "longer than what holds it"),
        (b"PBUF\x02\x0d\x01", "longer than what holds it"),
        (b"PBUF\x04\x0a\x02\x08\x01", "not bytes and bytes"),
        (b"PBUF\x01\x0c", "wire type 4"),
        (b"PBUF" + b"\xff" * 12, "varint"),
    ],
)
def test_a_file_info_that_is_no_message_is_refused(info: bytes, reason: str) -> None:
    assert reason in str(refusal(unpacked_index_file(info=info)))


def test_a_block_longer_than_its_room_is_refused() -> None:
    content = bytearray(unpacked_index_file())
    start = content.index(b"FILEINF2")
    for place in (8, 12, 29):
        content[start + place + 3] += 5
    assert "longer than the room" in str(refusal(bytes(content)))


def test_a_key_with_more_than_its_content_is_refused() -> None:
    content = bytearray(hbase_file(ENTRIES, is_packed=False))
    # The first cell's key grows by the first byte of its value, which shrinks by it.
    content[33 + 3] += 1
    content[33 + 7] -= 1
    assert refusal(bytes(content)).parameters["offset"] == 0
    assert refusal_of(lambda file: file.lookup([b"key 000"]), bytes(content)) is not None


@pytest.mark.parametrize("blocks", [10, 100])
def test_a_key_smaller_than_its_frame_is_refused(blocks: int) -> None:
    entries = [(b"%03d" % number, bytes(30)) for number in range(blocks)]
    content = bytearray(hbase_file(entries, per_block=1, is_packed=False))
    content[33 : 33 + 8] = struct.pack(">ii", 3, 30 + 12)
    assert refusal(bytes(content)).parameters["offset"] == 0


def test_a_value_that_leaves_its_block_is_not_looked_up() -> None:
    content = bytearray(hbase_file(ENTRIES, per_block=1, is_packed=False))
    content[33 + 7] += 1
    asked = refusal_of(lambda file: file.lookup([b"key 000"]), bytes(content))
    assert "longer than its room" in str(asked)


def test_fewer_entries_than_the_trailer_says_are_refused() -> None:
    content = hbase_file(ENTRIES)
    damaged = content.replace(b"\x38" + bytes([len(ENTRIES)]), b"\x38" + bytes([3]))
    assert "3 by its trailer" in str(refusal(damaged))


def test_another_version_is_refused() -> None:
    content = SAMPLES["one level"][:-1] + b"\2"
    assert "version 2" in str(refusal(content))


def test_cells_with_memory_timestamps_are_refused() -> None:
    content = SAMPLES["one level"].replace(
        b"MAX_MEMSTORE_TS_KEY\x12\x08\0", b"MAX_MEMSTORE_TS_KEY\x12\x08\1"
    )
    assert "version" in str(refusal(content))


def test_a_codec_of_hbase_alone_is_refused_by_name() -> None:
    content = SAMPLES["one level"].replace(b"\x60\x02", b"\x60\x03")
    with pytest.raises(InvalidRequest, match="SNAPPY") as refused:
        HFile(BufferSource(content), "some.hfile")
    assert refused.value.code == "unsupported_hfile_codec"


def test_a_file_that_ends_early_is_refused() -> None:
    class Shrinking(BufferSource):
        size = len(JAVA_FILE) + 10

    with pytest.raises(CorruptTable, match="ends early"):
        HFile(Shrinking(JAVA_FILE), "some.hfile")
