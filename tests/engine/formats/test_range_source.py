"""Sources give the bytes of a range, wherever they lie."""

import io

import pyarrow as pa
import pytest

from lakewarden.engine.formats.range_source import BufferSource, FileRanges, RangeSource

CONTENT = bytes(range(100))
SOURCES: list[RangeSource] = [
    BufferSource(CONTENT),
    BufferSource(memoryview(b"--" + CONTENT + b"--")[2:-2]),
    BufferSource(pa.py_buffer(CONTENT)),
    FileRanges(pa.BufferReader(CONTENT)),
    FileRanges(pa.PythonFile(io.BytesIO(CONTENT), mode="r")),
]


@pytest.mark.parametrize("source", SOURCES)
def test_ranges_are_read_in_any_order(source: RangeSource) -> None:
    assert source.size == 100
    assert source.read(90, 10) == CONTENT[90:]
    assert source.read(5, 3) == CONTENT[5:8]
    assert source.read(50, 0) == b""


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_behind_the_end_is_missing(source: RangeSource) -> None:
    assert source.read(95, 10) == CONTENT[95:]
