"""HFiles are read as a plain loop over all their bytes reads them, and no further than needed."""

import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.hfile import BlockCache, HFile, HFileEntries, write_hfile
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.engine.formats.hfile.hbase_files import cell, hbase_file
from tests.engine.formats.hfile.java_files import (
    LOOSE_FILES,
    base_files,
    log_files,
    one_base_file,
    tables_with_base_files,
)
from tests.engine.formats.hfile.plain_reader import Entry, plain_blocks, plain_entries

NUMBERED = [(b"key %05d" % number, b"value %d" % number) for number in range(5_000)]
KEYS = [key for key, _ in NUMBERED]

keys = st.binary(max_size=6)
sorted_entries = st.lists(st.tuples(keys, st.binary(max_size=30)), max_size=60).map(
    lambda entries: sorted(entries, key=lambda entry: entry[0])
)


class RecordingSource(BufferSource):
    """A source that remembers which ranges were read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.ranges: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return super().read(offset, length)


def opened(content: bytes) -> HFile:
    return HFile(BufferSource(content), "some.hfile")


def pairs(entries: HFileEntries) -> list[Entry]:
    return list(zip(entries.keys.to_pylist(), entries.values.to_pylist(), strict=True))


def stored(entries: list[Entry], codec: str = "none", block_bytes: int = 200) -> bytes:
    return write_hfile(
        pa.array([key for key, _ in entries], pa.large_binary()),
        pa.array([value for _, value in entries], pa.large_binary()),
        schema_text='"bytes"',
        created_ms=0,
        codec="gzip" if codec == "gzip" else "none",
        block_bytes=block_bytes,
    )


def check_against_plain_reading(content: bytes) -> None:
    expected = plain_entries(content)
    file = opened(content)
    assert file.entry_count == len(expected)
    assert pairs(file.entries()) == expected
    assert pairs(file.lookup([key for key, _ in expected])) == expected
    assert pairs(file.lookup_prefixes([b""])) == expected
    assert not len(file.lookup(sorted(key + b"!" for key, _ in expected)))


@pytest.mark.parametrize("table", tables_with_base_files())
def test_base_files_of_java_are_read(table: str) -> None:
    for content in base_files(table).values():
        check_against_plain_reading(content)
        assert opened(content).schema_text.startswith('{"type":"record"')


@pytest.mark.parametrize("table", ["mor_metadata_services", "v8_mor_by_102", "v6_mor"])
def test_log_blocks_of_java_are_read(table: str) -> None:
    files = log_files(table)
    assert files
    for content in files.values():
        check_against_plain_reading(content)


@pytest.mark.parametrize("path", LOOSE_FILES, ids=lambda path: path.stem)
def test_loose_files_of_hbase_are_read(path: Path) -> None:
    check_against_plain_reading(path.read_bytes())


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("shorten", [False, True])
def test_indexes_of_several_levels_are_followed(levels: int, shorten: bool) -> None:
    content = hbase_file(NUMBERED[:200], levels=levels, shorten=shorten)
    check_against_plain_reading(content)
    file = opened(content)
    assert pairs(file.lookup([b"key 00150"])) == [NUMBERED[150]]
    assert pairs(file.lookup_prefixes([b"key 0015"])) == NUMBERED[150:160]


@settings(deadline=None)
@given(sorted_entries, sorted_entries, st.sampled_from(["none", "gzip"]))
def test_lookups_find_what_is_there(entries: list[Entry], others: list[Entry], codec: str) -> None:
    file = opened(stored(entries, codec, block_bytes=60))
    wanted = sorted({key for key, _ in others} | {key for key, _ in entries[::2]})
    assert pairs(file.lookup(wanted)) == [entry for entry in entries if entry[0] in wanted]


@settings(deadline=None)
@given(sorted_entries, st.lists(st.binary(max_size=3)).map(sorted))
def test_prefixes_find_what_begins_with_them(entries: list[Entry], prefixes: list[bytes]) -> None:
    file = opened(stored(entries, block_bytes=60))
    assert pairs(file.lookup_prefixes(prefixes)) == [
        entry for entry in entries if entry[0].startswith(tuple(prefixes))
    ]


@settings(deadline=None)
@given(
    sorted_entries, st.permutations(range(256)), st.integers(0, 256), st.sampled_from([60, 4000])
)
def test_many_keys_are_found_as_few_are(
    entries: list[Entry], order: list[int], count: int, block_bytes: int
) -> None:
    file = opened(stored(entries, block_bytes=block_bytes))
    wanted = {bytes((first,)) for first in order[:count]} | {key for key, _ in entries[::2]}
    backwards = pa.array(sorted(wanted, reverse=True), pa.large_binary())
    found = [entry for entry in entries if entry[0] in wanted]
    assert pairs(file.matching(backwards)) == found


def test_a_prefix_of_highest_bytes_has_no_upper_end() -> None:
    entries = [(b"\xfe", b""), (b"\xff", b""), (b"\xff\xff", b""), (b"\xff\xff\x01", b"")]
    file = opened(stored(entries))
    assert pairs(file.lookup_prefixes([b"\xff\xff"])) == entries[2:]


def test_all_entries_of_a_repeated_key_are_found_in_order() -> None:
    repeated = [(b"a", b"1"), *((b"b", b"%d" % number) for number in range(100)), (b"c", b"1")]
    file = opened(stored(repeated))
    assert pairs(file.lookup([b"b"])) == repeated[1:-1]


def test_a_key_asked_for_twice_is_given_once() -> None:
    assert pairs(opened(stored(NUMBERED)).lookup([b"key 00007"] * 3)) == [NUMBERED[7]]


@pytest.mark.parametrize("key", [b"", b"a", b"key 000070", b"key 0000", b"z", b"k" * 70_000])
def test_a_key_that_is_not_there_is_not_found(key: bytes) -> None:
    assert not len(opened(stored(NUMBERED)).lookup([key]))


def test_a_value_that_looks_like_a_cell_is_no_entry() -> None:
    forged = cell(b"key b", b"forged")
    entries = [(b"key a", forged + forged), (b"key c", b"\0" * 30 + forged), (b"key d", b"")]
    file = opened(stored(entries))
    assert pairs(file.lookup([b"key a", b"key b", b"key d"])) == [entries[0], entries[2]]


def test_a_value_that_looks_like_its_own_cell_hides_nothing() -> None:
    entries = [(b"key a", cell(b"key b", b"forged")), (b"key b", b"real")]
    assert pairs(opened(stored(entries)).lookup([b"key b"])) == [entries[1]]


def test_an_empty_file_has_no_entries() -> None:
    file = opened(hbase_file([]))
    assert (file.entry_count, len(file.entries()), len(file.lookup([b"a"]))) == (0, 0, 0)
    assert not len(file.lookup_prefixes([b""]))


def test_batches_are_the_entries_in_pieces() -> None:
    content = stored([(b"%08d" % number, bytes(1000)) for number in range(40_000)])
    batches = list(opened(content).batches())
    assert len(batches) > 1
    joined = pa.chunked_array([batch.keys for batch in batches])
    assert joined.combine_chunks().equals(opened(content).entries().keys)


def test_meta_blocks_and_file_info_are_found_by_name() -> None:
    file = opened(one_base_file("mor_compaction_completed", "files"))
    assert file.info("bloomFilterTypeCode") == b"DYNAMIC_V0"
    assert (file.meta("bloomFilter") or b"").startswith(b"/////wAAAB4B")
    assert file.info("missing") is None
    assert file.meta("missing") is None


def test_opening_reads_the_trailer_and_what_follows_the_data() -> None:
    content = stored(NUMBERED)
    source = RecordingSource(content)
    HFile(source, "some.hfile")
    tail = len(content) - 4096
    (trailer, (start, length)) = source.ranges
    assert trailer == (tail, 4096)
    assert start + length == tail
    assert content[start : start + 8] == b"IDXROOT2"
    assert content[:start].count(b"DATABLK*") == len(plain_blocks(content)) - 3


def test_a_lookup_reads_one_block_per_key() -> None:
    source = RecordingSource(stored(NUMBERED))
    file = HFile(source, "some.hfile")
    source.ranges.clear()
    file.lookup([KEYS[10], KEYS[2000], KEYS[4000]])
    assert len(source.ranges) == 3
    assert all(length < 300 for _, length in source.ranges)


def test_neighbouring_blocks_are_read_at_once() -> None:
    source = RecordingSource(stored(NUMBERED))
    file = HFile(source, "some.hfile")
    source.ranges.clear()
    file.lookup(KEYS[1000:2000])
    assert len(source.ranges) == 1


def test_unpacked_blocks_are_kept_for_the_next_lookup() -> None:
    source = RecordingSource(stored(NUMBERED, "gzip"))
    file = HFile(source, "some.hfile")
    first = pairs(file.lookup(KEYS[1000:1003]))
    source.ranges.clear()
    assert pairs(file.lookup(KEYS[1000:1003])) == first
    assert not source.ranges


def test_a_cache_serves_several_readers_of_a_file() -> None:
    content, cache = stored(NUMBERED, "gzip"), BlockCache()
    HFile(BufferSource(content), "some.hfile", cache).lookup([KEYS[5]])
    source = RecordingSource(content)
    again = HFile(source, "some.hfile", cache)
    source.ranges.clear()
    assert pairs(again.lookup([KEYS[5]])) == [NUMBERED[5]]
    assert not source.ranges


def test_a_file_on_storage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.hfile"
    path.write_bytes(stored(NUMBERED))
    with pa.OSFile(str(path)) as native:
        assert pairs(HFile(FileRanges(native), path.name).entries()) == NUMBERED


def test_a_python_file_is_read() -> None:
    native = pa.PythonFile(io.BytesIO(stored(NUMBERED)), mode="r")
    assert pairs(HFile(FileRanges(native), "some.hfile").lookup([KEYS[9]])) == [NUMBERED[9]]


@pytest.mark.parametrize("method", ["lookup", "lookup_prefixes"])
def test_unsorted_keys_are_refused(method: str) -> None:
    with pytest.raises(InvalidRequest, match="ascending") as refused:
        getattr(opened(stored(NUMBERED)), method)([b"b", b"a"])
    assert refused.value.code == "unsorted_keys"


def test_a_missing_schema_is_told() -> None:
    file = opened(hbase_file([], is_packed=False).replace(b"schema", b"SCHEMA"))
    with pytest.raises(CorruptTable, match="schema"):
        _ = file.schema_text


def test_bloom_filters_of_few_values_are_read_although_they_pack_well() -> None:
    """Java gives each file a filter for 60,000 values, however few it has."""
    filters = [(b"key %03d" % number, b"A" * 433_000 + b"%d" % number) for number in range(150)]
    content = stored(filters, codec="gzip", block_bytes=1 << 16)
    assert 433_000 * len(filters) > 300 * len(content)
    assert pairs(opened(content).entries()) == filters
