"""Log files become blocks, whatever their bytes are."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Block, BlockKind, Header
from lakewarden.engine.formats.log.reader import read_apart, read_blocks, read_heads
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.engine.formats.log.frames import FIRST_DELETE_BLOCK, frame, golden_logs
from tests.golden_tables import GOLDEN_TABLES

PATH = "p=a/.f-0_20260101000000000.log.1_0-0-0"
ONE = frame(3, {0: "20260101000000000", 2: "{}"}, b"first")
TWO = frame(1, {0: "20260102000000000"}, b"second")


def kinds(blocks: tuple[Block, ...]) -> list[str]:
    return [block.kind.name for block in blocks]


def test_an_empty_file_has_no_blocks():
    assert read_blocks(b"", PATH) == ()


def test_the_first_delete_block_of_a_metadata_file_group_is_read():
    (block,) = read_blocks(FIRST_DELETE_BLOCK, PATH)
    assert block.kind is BlockKind.DELETE
    assert block.instant == "00000000000000001"
    assert bytes(block.content) == bytes.fromhex("000000030000000100")
    assert (block.offset, block.size_bytes, block.content_offset) == (0, 80, 59)


def test_blocks_follow_one_another():
    first, second = read_blocks(ONE + TWO, PATH)
    assert (bytes(first.content), bytes(second.content)) == (b"first", b"second")
    assert second.offset == len(ONE)
    assert first.schema_text == "{}"


def test_contents_are_views_of_the_file():
    content = bytearray(ONE)
    (block,) = read_blocks(memoryview(content), PATH)
    content[block.content_offset] = ord("F")
    assert bytes(block.content) == b"First"


def test_headers_are_known_by_name():
    (block,) = read_blocks(frame(3, {0: "1", 7: "TRUE", 4: "3, 5,7"}, b""), PATH)
    assert block.is_partial
    assert block.compacted_instants == ("3", "5", "7")
    assert block.headers[Header.IS_PARTIAL] == "TRUE"


def test_a_block_without_schema_says_so():
    (block,) = read_blocks(TWO, PATH)
    with pytest.raises(CorruptTable, match="no schema") as caught:
        _ = block.schema_text
    assert (caught.value.path, caught.value.offset) == (PATH, block.content_offset)


@pytest.mark.parametrize("kept", [1, 6, 13, 14, 40, len(TWO) - 1])
def test_a_torn_tail_is_a_corrupt_block(kept: int):
    blocks = read_blocks(ONE + TWO[:kept], PATH)
    assert kinds(blocks) == ["AVRO", "CORRUPT"]
    assert blocks[1].size_bytes == kept
    assert blocks[1].reason


def test_reading_goes_on_at_the_next_magic():
    blocks = read_blocks(ONE[:30] + TWO + ONE, PATH)
    assert kinds(blocks) == ["CORRUPT", "DELETE", "AVRO"]


def test_neighbouring_corrupt_stretches_are_one_block():
    blocks = read_blocks(ONE[:30] + ONE[:20] + TWO, PATH)
    assert kinds(blocks) == ["CORRUPT", "DELETE"]
    assert blocks[0].size_bytes == 50


def test_a_magic_inside_a_corrupt_magic_is_found():
    blocks = read_blocks(b"#HUDI" + ONE, PATH)
    assert kinds(blocks) == ["CORRUPT", "AVRO"]


def test_a_magic_inside_a_content_does_not_end_the_block():
    (block,) = read_blocks(frame(3, {0: "1"}, b"a#HUDI#b"), PATH)
    assert bytes(block.content) == b"a#HUDI#b"


def test_a_block_followed_by_other_bytes_is_corrupt():
    assert kinds(read_blocks(ONE + b"other bytes", PATH)) == ["CORRUPT"]


def test_a_wrong_reverse_pointer_makes_a_block_corrupt():
    broken = ONE[:-1] + bytes([ONE[-1] ^ 1])
    (block,) = read_blocks(broken, PATH)
    assert block.kind is BlockKind.CORRUPT
    assert "reverse pointer" in block.reason


def test_parts_that_do_not_add_up_make_a_block_corrupt():
    longer = bytearray(ONE)
    longer[len(ONE) - 8 - 4 - 5 - 1] = 4
    assert kinds(read_blocks(bytes(longer), PATH)) == ["CORRUPT"]


def test_an_unknown_kind_is_refused_by_its_number():
    with pytest.raises(InvalidRequest, match="unknown kind 9") as caught:
        read_blocks(frame(9, {0: "1"}, b""), PATH)
    assert caught.value.code == "unsupported_log_block"


def test_an_unknown_header_is_refused_by_its_number():
    with pytest.raises(InvalidRequest, match="unknown header 12") as caught:
        read_blocks(frame(3, {0: "1", 12: "?"}, b""), PATH)
    assert caught.value.code == "unsupported_log_header"


def test_an_unknown_format_version_is_refused():
    with pytest.raises(InvalidRequest) as caught:
        read_blocks(frame(3, {0: "1"}, b"", version=2), PATH)
    assert caught.value.code == "unsupported_log_version"


@pytest.mark.parametrize("table", [name for name in GOLDEN_TABLES if name.startswith("mor_")])
def test_golden_logs_have_no_corrupt_block(table: str):
    for path, content in golden_logs(table):
        blocks = read_blocks(content, path)
        assert BlockKind.CORRUPT not in {block.kind for block in blocks}
        assert sum(block.size_bytes for block in blocks) == len(content)


def assert_covered(content: bytes) -> None:
    """Blocks tile the file without gaps, or the file is refused by name."""
    try:
        blocks = read_blocks(content, PATH)
    except InvalidRequest:
        return
    ends = [block.offset + block.size_bytes for block in blocks]
    assert [block.offset for block in blocks] == [0, *ends[:-1]][: len(blocks)]
    assert (ends[-1] if ends else 0) == len(content)


@given(st.binary(max_size=300))
def test_random_bytes_become_blocks(content: bytes):
    assert_covered(content)


@given(st.integers(0, len(ONE + TWO) - 1), st.integers(1, 255))
def test_changed_bytes_become_blocks(position: int, change: int):
    content = bytearray(ONE + TWO)
    content[position] ^= change
    assert_covered(bytes(content))


@given(st.integers(0, len(ONE + TWO)), st.integers(0, len(ONE + TWO)))
def test_cut_and_joined_bytes_become_blocks(end: int, start: int):
    assert_covered((ONE + TWO)[:end] + (ONE + TWO)[start:])


LARGE = frame(3, {0: "20260103000000000", 2: "{}"}, bytes(70_000))


def heads(content: bytes) -> list[tuple[BlockKind, str, int, int]]:
    blocks = read_heads(BufferSource(content), PATH)
    return [(block.kind, block.instant, block.offset, block.size_bytes) for block in blocks]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        ONE + TWO,
        LARGE + TWO + LARGE,
        LARGE[:-9] + TWO,
        LARGE + b"#HUD",
        LARGE + LARGE[:40],
        LARGE.replace(b"#HUDI#", b"#HUDO#") + ONE,
    ],
)
def test_heads_are_those_of_the_blocks_that_a_reader_finds(content: bytes):
    whole = [(b.kind, b.instant, b.offset, b.size_bytes) for b in read_blocks(content, PATH)]
    assert heads(content) == whole


def assert_the_same_apart(content: bytes) -> None:
    try:
        whole = read_blocks(content, PATH)
    except InvalidRequest as refusal:
        with pytest.raises(InvalidRequest, match=re.escape(str(refusal))):
            read_apart(BufferSource(content), PATH)
    else:
        assert read_apart(BufferSource(content), PATH) == whole


@given(st.integers(0, len(ONE + TWO)), st.integers(0, len(ONE + TWO)), st.integers(0, 255))
def test_blocks_read_apart_are_those_of_the_whole_file(end: int, start: int, change: int):
    content = bytearray((ONE + TWO)[:end] + (ONE + TWO)[start:])
    if content:
        content[start % len(content)] ^= change
    assert_the_same_apart(bytes(content))
    assert_the_same_apart(ONE + LARGE + bytes(content))


def test_blocks_read_apart_have_bytes_of_their_own():
    file = pa.BufferReader(LARGE + TWO)
    first, second = read_apart(FileRanges(file), PATH)
    assert first.content.obj is not second.content.obj
    assert len(first.content.obj) < len(LARGE + TWO)


def test_heads_of_large_blocks_are_found_without_reading_their_contents():
    class Counting(BufferSource):
        taken = 0

        def read(self, offset: int, length: int) -> memoryview:
            self.taken += min(length, self.size - offset)
            return super().read(offset, length)

    source = Counting(frame(3, {0: "1", 2: "{}"}, bytes(10 << 20)) + TWO)
    assert len(read_heads(source, PATH)) == 2
    assert source.taken < 1 << 18
