"""Logs that need not be read: only those of which the name and the size say everything."""

from pathlib import Path

import pytest

from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.metadata.encoding.records import initial_log, known_content
from tests.conftest import GoldenTable

INITIAL = "00000000000000002"
EMPTY_BYTES = len(initial_log(INITIAL))


def log(instant: str = INITIAL, token: str = "0-0-0", size_bytes: int = EMPTY_BYTES) -> LogFile:
    found = parse_file_name(f".record-index-0000-0_{instant}.log.1_{token}", size_bytes)
    assert isinstance(found, LogFile)
    return found


def test_the_first_log_of_a_file_group_is_known() -> None:
    assert known_content(log()) == initial_log(INITIAL)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(log(size_bytes=EMPTY_BYTES + 1), id="longer"),
        pytest.param(log(size_bytes=EMPTY_BYTES - 1), id="cut short"),
        pytest.param(log(size_bytes=0), id="lost its bytes"),
        pytest.param(log(instant="20260101000000000"), id="of a write"),
        pytest.param(log(token="0-0-1"), id="by another attempt"),
    ],
)
def test_any_other_log_is_read(other: LogFile) -> None:
    assert known_content(other) is None


@pytest.mark.parametrize("name", ["mor_record_index_global", "mor_nested_partitions"])
def test_what_java_begins_a_file_group_with_is_what_we_know(name: str, golden: GoldenTable) -> None:
    known = 0
    for path in Path(golden(name)).glob(".hoodie/metadata/*/.*.log.*"):
        found = parse_file_name(path.name, path.stat().st_size)
        assert isinstance(found, LogFile)
        content = known_content(found)
        if content is not None:
            assert path.read_bytes() == content
            known += 1
    assert known > 0
