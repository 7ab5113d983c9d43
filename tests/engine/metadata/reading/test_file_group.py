"""What a file group of the metadata table reads again, and what it knows from before."""

from collections.abc import Iterable

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import ClosedFiles, FileSlice
from lakewarden.engine.kernel.caches import ByteBounded
from lakewarden.engine.metadata.encoding.records import (
    NO_ENTRIES,
    base_file,
    base_name,
    initial_log,
    log_name,
)
from lakewarden.engine.metadata.reading.partition import MetadataFileGroup
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.testing.faults import FaultyStorage

INSTANT = "20261120093057994"
NAME = log_name("files-0000-0", INSTANT, "0-0-1")


def reads(completions: Iterable[str | None]) -> list[int]:
    """How many calls looks at one log make, each with the time at which its write completed."""
    storage, closed, calls = FaultyStorage(fresh_memory_storage()), ClosedFiles(), []
    content = initial_log(INSTANT)
    storage.put(f"files/{NAME}", content)
    log = LogFile(NAME, "files-0000-0", INSTANT, 1, "0-0-1", len(content))
    slice_ = FileSlice("files", "files-0000-0", INSTANT, None, (log,))
    for completed in completions:
        before = len(storage.calls)
        times = {INSTANT: completed}
        group = MetadataFileGroup(storage, slice_, lambda _: True, None, times.get, closed)
        assert len(group.log_blocks) == 1
        calls.append(len(storage.calls) - before)
    return calls


def test_a_log_of_a_completed_write_is_read_once() -> None:
    assert reads(["20261120093058000"] * 3) == [1, 0, 0]


def test_a_log_that_was_made_anew_by_the_same_name_is_read_anew() -> None:
    assert reads(["20261120093058000", "20261120093059000"]) == [1, 1]


def test_a_log_of_a_write_that_has_not_completed_is_not_kept() -> None:
    assert reads([None, None, INSTANT, INSTANT]) == [1, 1, 1, 1]


def test_what_tells_a_base_file_from_others_is_read_once_though_its_content_is_not_kept() -> None:
    storage = FaultyStorage(fresh_memory_storage())
    closed = ClosedFiles(metadata=ByteBounded(0))
    name, content = base_name("files-0000-0", INSTANT, "0-0-1"), base_file(NO_ENTRIES, 5)
    storage.put(f"files/{name}", content)
    base = BaseFile(name, "files-0000-0", "0-0-1", INSTANT, "hfile", len(content))
    slice_ = FileSlice("files", "files-0000-0", INSTANT, base)
    marks, calls = [], []
    for completed in ("20261120093058000", "20261120093058000", "20261120093059000"):
        before = len(storage.calls)
        times = {INSTANT: completed}
        group = MetadataFileGroup(storage, slice_, lambda _: True, None, times.get, closed)
        marks.append(group.base_mark)
        assert group.base_entries == 0
        calls.append(len(storage.calls) > before)
    assert calls == [True, False, True]
    assert marks[0] == marks[1] != marks[2]
