"""Stitching: files that become one as bytes hold the rows that reading and joining them gives."""

import io
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.parquet_stitch.compact import read_struct, written
from lakewarden.engine.formats.parquet_stitch.footer import read_footer
from lakewarden.engine.formats.parquet_stitch.stitcher import (
    PAGE_ROWS_MAX,
    Range,
    Stitcher,
    constant_chunk,
    obstacle,
)
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.kernel.errors import CorruptTable

NAME = "_hoodie_file_name"
TYPES = (
    pa.int64(),
    pa.int32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.binary(),
    pa.decimal128(12, 3),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.list_(pa.int64()),
    pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
    pa.map_(pa.string(), pa.float64()),
)


def value_of(kind: pa.DataType, number: int) -> object:
    """Some value of a type; every fifth is null."""
    if number % 5 == 0:
        return None
    if pa.types.is_struct(kind):
        return {"x": number, "y": [str(number)] * (number % 3)}
    if pa.types.is_map(kind):
        return [(str(number), number / 2)]
    if pa.types.is_list(kind):
        return list(range(number % 4))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar(f"text {number % 9}").cast(kind).as_py()
    if pa.types.is_decimal(kind):
        return Decimal(number) / 8
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        whole = pa.int32() if pa.types.is_date(kind) else pa.int64()
        return pa.scalar(number, whole).cast(kind).as_py()
    return number % 2 == 0 if pa.types.is_boolean(kind) else number


def table(kinds: Sequence[pa.DataType], count: int, first: int, name: str) -> pa.Table:
    columns = {
        f"c{place}": pa.array([value_of(kind, first + n) for n in range(count)], kind)
        for place, kind in enumerate(kinds)
    }
    half = len(columns) // 2
    named = {NAME: pa.array([name] * count, pa.string())}
    items = list(columns.items())
    return pa.table({**dict(items[:half]), **named, **dict(items[half:])})


def stored(rows: pa.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    pq.write_table(rows, stream, **options)
    return stream.getvalue()


def stitched(files: Sequence[bytes], constants: dict[str, str]) -> bytes:
    """The new file, as whoever copies would make it."""
    found = [read_footer(BufferSource(content), "f").footer for content in files]
    assert obstacle(found, constants) is None
    stitcher = Stitcher(found[0], constants)
    out = bytearray(Stitcher.HEAD)
    for content, footer in zip(files, found, strict=True):
        for group in footer.groups:
            for piece in stitcher.add(group):
                if isinstance(piece, Range):
                    out += content[piece.start : piece.start + piece.length]
                else:
                    out += piece
    assert len(out) == stitcher.size_bytes
    return bytes(out) + stitcher.finish({"who": "we"})


file_shapes = st.tuples(
    st.integers(1, 60),
    st.integers(1, 40),
    st.sampled_from(["NONE", "SNAPPY", "ZSTD", "GZIP"]),
    st.booleans(),
    st.sampled_from(["1.0", "2.0"]),
    st.booleans(),
)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=5),
    st.lists(file_shapes, min_size=1, max_size=4),
)
def test_a_stitched_file_holds_the_rows_of_all(
    kinds: list[pa.DataType], shapes: list[tuple[int, int, str, bool, str, bool]]
) -> None:
    tables, files = [], []
    for place, (count, group_rows, codec, dictionary, pages, has_index) in enumerate(shapes):
        rows = table(kinds, count, 100 * place, f"old {place}")
        tables.append(rows)
        files.append(
            stored(
                rows,
                row_group_size=group_rows,
                compression=codec,
                use_dictionary=dictionary,
                data_page_version=pages,
                write_page_index=has_index,
                store_schema=False,
            )
        )
    found = pq.ParquetFile(io.BytesIO(stitched(files, {NAME: "new"})))
    expected = pa.concat_tables(tables)
    place = expected.schema.get_field_index(NAME)
    names = pa.array(["new"] * len(expected))
    expected = expected.set_column(place, NAME, names)
    plain = pq.read_table(io.BytesIO(stored(expected, store_schema=False)))
    assert found.read().equals(plain)
    assert found.metadata.metadata == {b"who": b"we"}
    assert found.metadata.num_row_groups == sum(-(-count // size) for count, size, *_ in shapes)


def test_statistics_of_the_parts_are_those_of_the_whole() -> None:
    files = [stored(pa.table({"n": [first, first + 5]})) for first in (10, 20)]
    found = pq.ParquetFile(io.BytesIO(stitched(files, {}))).metadata
    bounds = [found.row_group(number).column(0).statistics for number in range(2)]
    assert [(one.min, one.max) for one in bounds] == [(10, 15), (20, 25)]


def test_the_replaced_column_has_statistics_of_its_own() -> None:
    files = [stored(table([pa.int64()], 3, 0, "old"))]
    group = pq.ParquetFile(io.BytesIO(stitched(files, {NAME: "new"}))).metadata.row_group(0)
    (chunk,) = (c for c in map(group.column, range(2)) if c.path_in_schema == NAME)
    assert (chunk.statistics.min, chunk.statistics.max, chunk.statistics.null_count) == (
        "new",
        "new",
        0,
    )


def test_a_required_column_is_replaced_as_well() -> None:
    schema = pa.schema([pa.field(NAME, pa.string(), nullable=False), ("n", pa.int64())])
    rows = pa.table({NAME: ["old"] * 4, "n": range(4)}, schema=schema)
    found = pq.read_table(io.BytesIO(stitched([stored(rows)], {NAME: "new"})))
    assert found.column(NAME).to_pylist() == ["new"] * 4


def test_more_rows_than_a_page_holds_make_several_pages() -> None:
    count = PAGE_ROWS_MAX + 7
    rows = pa.table({"n": pa.nulls(count, pa.int8()), NAME: pa.nulls(count, pa.string())})
    chunk = constant_chunk((NAME.encode(),), b"new", count, is_optional=True)
    assert chunk.data_pages == 2
    found = pq.read_table(io.BytesIO(stitched([stored(rows, store_schema=False)], {NAME: "new"})))
    assert pc.all(pc.equal(found.column(NAME), "new")).as_py()
    assert len(found) == count


def test_files_with_other_columns_are_not_stitched() -> None:
    files = [stored(pa.table({"n": [1]})), stored(pa.table({"n": ["1"]}))]
    footers = [read_footer(BufferSource(content), "f").footer for content in files]
    assert obstacle(footers, {}) == "other columns"
    assert obstacle(footers[:1], {NAME: "new"}) == "no column to replace"


def test_a_footer_is_written_as_it_was_read() -> None:
    content = stored(table(TYPES, 9, 0, "old"), write_page_index=True)
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    assert written(read_struct(footer)) == footer


WHOLE = stored(table((pa.int64(), pa.string()), 50, 0, "old"), row_group_size=20)
LENGTH = int.from_bytes(WHOLE[-8:-4], "little") + 8


@settings(max_examples=200)
@given(st.integers(1, LENGTH), st.integers(1, 255))
def test_a_flipped_footer_is_read_or_refused_by_name(place: int, flip: int) -> None:
    content = bytearray(WHOLE)
    content[-place] ^= flip
    with suppress(CorruptTable):
        read_footer(BufferSource(bytes(content)), "f.parquet")


def test_a_broken_footer_is_told_with_the_name_of_its_file() -> None:
    with pytest.raises(CorruptTable, match=r"f\.parquet") as refusal:
        read_footer(BufferSource(b"PAR1" + bytes(20) + b"PAR1"), "f.parquet")
    assert refusal.value.code == "corrupt_file"


@settings(max_examples=100)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_short_is_refused_by_name(length: int) -> None:
    with pytest.raises(CorruptTable):
        read_footer(BufferSource(WHOLE[:length]), "f.parquet")


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_random_bytes_are_no_footer(content: bytes) -> None:
    whole = b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(CorruptTable):
        read_footer(BufferSource(whole), "f.parquet")
