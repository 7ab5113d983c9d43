"""The ledger of a stream: one sequence of entries in which those who write its batches compete."""

import pytest

from lakewarden.engine.kernel.errors import CorruptTable, Unsettled
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.ledger.streams import (
    Batch,
    StreamEntry,
    StreamLedger,
    append_to_stream,
    read_stream,
    read_streams,
    stream_folder,
)

NAMES = ("orders", "a/b", "..", "Ünï", "a b", "a=b")


def entry(number: int, owner: str = "me", stream: str = "s") -> StreamEntry:
    return StreamEntry(
        stream=stream,
        owner=owner,
        at_ms=5,
        done=tuple(Batch(number=n, instant=f"i{n}", rows=3, digest="d") for n in range(number)),
        started=Batch(number=number, instant=f"i{number}", rows=3, digest="d"),
    )


def appended(storage: MemoryStorage, count: int, stream: str = "s") -> StreamLedger:
    ledger = read_stream(storage, stream)
    for number in range(count):
        ledger = append_to_stream(storage, ledger, entry(number, stream=stream))
    return ledger


def entries(storage: MemoryStorage) -> list[str]:
    return [file.name for file in storage.list(stream_folder("s")).files]


@pytest.fixture
def storage() -> MemoryStorage:
    return fresh_memory_storage()


def test_a_stream_that_nobody_has_written_has_no_entry(storage: MemoryStorage) -> None:
    assert read_stream(storage, "s") == StreamLedger("s")
    assert read_streams(storage) == ()


def test_an_entry_is_read_as_it_was_written(storage: MemoryStorage) -> None:
    assert read_stream(storage, "s") != appended(storage, 2)
    assert read_stream(storage, "s") == StreamLedger("s", 2, entry(1))


def test_only_the_newest_entries_are_kept(storage: MemoryStorage) -> None:
    appended(storage, 9)
    assert entries(storage) == ["000000007.json", "000000008.json", "000000009.json"]
    assert read_stream(storage, "s").number == 9


def test_of_two_that_have_read_the_same_entry_one_appends(storage: MemoryStorage) -> None:
    ledger = appended(storage, 1)
    append_to_stream(storage, ledger, entry(1, "first"))
    second = append_to_stream(storage, ledger, entry(1, "second"))
    assert second.entry is not None
    assert second.entry.owner == "first"


def test_who_was_paused_does_not_win_a_place_that_was_emptied_since(storage: MemoryStorage) -> None:
    paused = appended(storage, 1)
    appended(storage, 9)
    late = append_to_stream(storage, paused, entry(1, "late"))
    assert late == StreamLedger("s", 10, entry(8))
    assert read_stream(storage, "s") == late


def test_an_entry_that_was_cut_short_keeps_its_number_and_says_nothing(
    storage: MemoryStorage,
) -> None:
    appended(storage, 2)
    storage.put(f"{stream_folder('s')}/000000003.json", b'{"format": 1')
    assert read_stream(storage, "s") == StreamLedger("s", 3, entry(1))


def test_a_first_entry_that_was_cut_short_is_no_stream(storage: MemoryStorage) -> None:
    storage.put(f"{stream_folder('s')}/000000001.json", b'{"format": 1')
    assert read_stream(storage, "s") == StreamLedger("s", 1)
    assert append_to_stream(storage, read_stream(storage, "s"), entry(0)).number == 2


def test_a_stream_without_a_whole_entry_is_damaged(storage: MemoryStorage) -> None:
    storage.put(f"{stream_folder('s')}/000000007.json", b"{")
    with pytest.raises(CorruptTable, match="no whole entry") as error:
        read_stream(storage, "s")
    assert error.value.code == "broken_stream"


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_may_have_any_name(storage: MemoryStorage, name: str) -> None:
    appended(storage, 1, name)
    assert [one.stream for one in read_streams(storage)] == [name]
    assert stream_folder(name).count("/") == stream_folder("s").count("/")


def test_two_names_have_two_folders() -> None:
    assert len({stream_folder(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("kind", [FaultKind.LOST_ANSWER, FaultKind.FAIL_AFTER, FaultKind.RETRIED])
def test_an_answer_that_was_lost_is_read_back(storage: MemoryStorage, kind: FaultKind) -> None:
    plan = FaultPlan(faults=(Fault(1, kind),))
    now = append_to_stream(FaultyStorage(storage, plan), read_stream(storage, "s"), entry(0))
    assert now == read_stream(storage, "s") == StreamLedger("s", 1, entry(0))


@pytest.mark.parametrize("kind", [FaultKind.LOST_REQUEST, FaultKind.FAIL_BEFORE])
def test_where_nothing_shows_whether_it_is_there_nothing_is_claimed(
    storage: MemoryStorage, kind: FaultKind
) -> None:
    plan = FaultPlan(faults=(Fault(1, kind),))
    with pytest.raises(Unsettled) as error:
        append_to_stream(FaultyStorage(storage, plan), read_stream(storage, "s"), entry(0))
    assert error.value.code == "stream_unsettled"
