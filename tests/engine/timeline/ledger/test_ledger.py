"""The ledger: one sequence in which claims, the commit and the cancel compete."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import CorruptTable, Defect, InvalidRequest
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import (
    Cancelled,
    Claim,
    Committed,
    Entry,
    Torn,
    Withdrawn,
    decode_entry,
    encode_entry,
)
from lakewarden.engine.timeline.ledger.ledger import (
    Appended,
    InDoubt,
    Ledger,
    LostTo,
    append,
    assert_may_delete,
    assert_may_publish,
    entry_path,
    instants_with_ledger,
    read_ledger,
)
from tests.engine.transaction.hooked import Hook

T = "20260307222557123"


def claim(attempt: int, owner: str = "me") -> Claim:
    return Claim(
        instant=T,
        action=Action.COMPACTION,
        attempt=attempt,
        owner=owner,
        host="h",
        process="7",
        engine_version="0.1",
        started_at_ms=5,
    )


def committed(attempt: int, owner: str = "me") -> Committed:
    return Committed(
        instant=T,
        action=Action.COMPACTION,
        attempt=attempt,
        owner=owner,
        at_ms=6,
        completion_time="20260307222600000",
        content=b"Obj\x01\x00\xff",
    )


def cancelled(owner: str = "me") -> Cancelled:
    return Cancelled(
        instant=T,
        action=Action.COMPACTION,
        owner=owner,
        by="somebody",
        reason="in the way",
        at_ms=7,
        partitions=("p=1", ""),
        missing_partitions=("p=2",),
    )


def withdrawn(owner: str = "me") -> Withdrawn:
    return Withdrawn(
        instant=T, action=Action.COMPACTION, owner=owner, by="somebody", reason="wrong", at_ms=8
    )


def ledger_with(storage: MemoryStorage, *entries: Entry) -> Ledger:
    ledger = read_ledger(storage, T)
    for entry in entries:
        appended = append(storage, ledger, entry)
        assert isinstance(appended, Appended)
        ledger = appended.ledger
    return ledger


ENDINGS: list[tuple[tuple[Entry, ...], LedgerEnd]] = [
    ((), LedgerEnd.NONE),
    ((claim(1),), LedgerEnd.CLAIM),
    ((claim(1), claim(2)), LedgerEnd.CLAIM),
    ((claim(1), claim(2), committed(2)), LedgerEnd.COMMITTED),
    ((cancelled(),), LedgerEnd.CANCELLED),
    ((claim(1), cancelled()), LedgerEnd.CANCELLED),
    ((claim(1), committed(1), withdrawn()), LedgerEnd.CANCELLED),
    ((withdrawn(),), LedgerEnd.CANCELLED),
]


@pytest.mark.parametrize(("entries", "end"), ENDINGS)
def test_what_was_appended_is_read(entries: tuple[Entry, ...], end: LedgerEnd) -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, *entries)
    assert read_ledger(storage, T) == ledger == Ledger(T, entries)
    assert ledger.ends_in is end
    assert ledger.last == (entries[-1] if entries else None)


def test_entries_are_numbered_from_one() -> None:
    storage = fresh_memory_storage()
    ledger_with(storage, claim(1), claim(2))
    folder = f".hoodie/.lakewarden/ledger/{T}"
    assert [entry.path for entry in storage.list(folder).files] == [
        f"{folder}/000001.json",
        f"{folder}/000002.json",
    ]
    assert instants_with_ledger(storage) == (T,)


@pytest.mark.parametrize("mine", [claim(2), committed(1), cancelled()])
@pytest.mark.parametrize("theirs", [claim(2, "other"), committed(1, "other"), cancelled("other")])
def test_of_two_entries_for_one_number_the_first_wins(mine: Entry, theirs: Entry) -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, claim(1))
    assert isinstance(append(storage, ledger, theirs), Appended)
    assert append(storage, ledger, mine) == LostTo(theirs)
    assert read_ledger(storage, T).last == theirs


def test_appending_the_same_entry_again_is_no_loss() -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, claim(1))
    assert append(storage, ledger, committed(1)) == append(storage, ledger, committed(1))


@pytest.mark.parametrize("kind", [FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER])
def test_an_unknown_outcome_is_in_doubt(kind: FaultKind) -> None:
    storage = FaultyStorage(fresh_memory_storage(), FaultPlan((Fault(1, kind),)))
    assert isinstance(append(storage, Ledger(T), claim(1)), InDoubt)


MISUSES: list[tuple[tuple[Entry, ...], Entry]] = [
    ((claim(1), committed(1)), claim(3)),
    ((claim(1), committed(1)), cancelled()),
    ((cancelled(),), claim(2)),
    ((cancelled(),), committed(1)),
    ((claim(1), committed(1), withdrawn()), claim(4)),
    ((claim(1), committed(1), withdrawn()), withdrawn()),
    ((), committed(1)),
    ((), claim(2)),
    ((claim(1),), claim(1)),
    ((claim(1), claim(2)), committed(1)),
    ((claim(1),), replace(cancelled(), instant="20260307222557124")),
    ((claim(1),), replace(cancelled(), action=Action.CLEAN)),
]


@pytest.mark.parametrize(("entries", "entry"), MISUSES)
def test_an_entry_that_breaks_the_rules_is_never_written(
    entries: tuple[Entry, ...], entry: Entry
) -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, *entries)
    with pytest.raises(Defect) as raised:
        append(storage, ledger, entry)
    assert raised.value.code == "ledger_misuse"
    assert read_ledger(storage, T) == ledger


@pytest.mark.parametrize(("entries", "entry"), MISUSES)
def test_an_entry_that_breaks_the_rules_is_corruption_when_read(
    entries: tuple[Entry, ...], entry: Entry
) -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, *entries)
    path = entry_path(T, ledger.next_number)
    storage.put(path, encode_entry(entry))
    with pytest.raises(CorruptTable) as raised:
        read_ledger(storage, T)
    assert (raised.value.code, raised.value.path) == ("broken_ledger", path)


@pytest.mark.parametrize("missing", [1, 2])
def test_a_hole_is_corruption(missing: int) -> None:
    storage = fresh_memory_storage()
    ledger_with(storage, claim(1), claim(2), claim(3))
    storage.delete(entry_path(T, missing))
    with pytest.raises(CorruptTable) as raised:
        read_ledger(storage, T)
    assert raised.value.code == "broken_ledger"


@pytest.mark.parametrize("end", [cancelled(), withdrawn()], ids=lambda one: type(one).__name__)
def test_the_end_of_a_ledger_that_is_being_forgotten_stands_for_it(end: Entry) -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, claim(1), claim(2), end)
    for number in (1, 2):
        storage.delete(entry_path(T, number))
        left = read_ledger(storage, T)
        assert (left.last, left.ends_in) == (ledger.last, LedgerEnd.CANCELLED)


def test_a_ledger_that_is_removed_while_it_is_read_is_none() -> None:
    storage = fresh_memory_storage()
    ledger_with(storage, claim(1), cancelled())

    def others_forget() -> None:
        for number in (1, 2):
            storage.delete(entry_path(T, number))

    assert read_ledger(Hook(1, others_forget).storage(storage), T) == Ledger(T)


def test_foreign_files_beside_entries_are_ignored() -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, claim(1))
    folder = f".hoodie/.lakewarden/ledger/{T}"
    for name in ("000002.json.tmp", ".000001.json.crc", "2.json", "x.txt"):
        storage.put(f"{folder}/{name}", b"?")
    assert read_ledger(storage, T) == ledger


@pytest.mark.parametrize(
    "payload",
    [
        encode_entry(claim(1)).replace(b'"format": 1', b'"format": 2'),
        encode_entry(claim(1)).replace(b'"claim"', b'"pact"'),
        b'{"format": 1}',
    ],
)
def test_a_newer_entry_is_refused_by_name(payload: bytes) -> None:
    with pytest.raises(InvalidRequest) as raised:
        decode_entry(payload, "some/path")
    assert (raised.value.code, raised.value.path) == ("unsupported_document", "some/path")


ENTRIES = (claim(1), committed(1), cancelled(), withdrawn())
ENCODED = [encode_entry(entry) for entry in ENTRIES]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"format": true}',
        b'{"format": 1, "kind": "claim"}',
        ENCODED[0].replace(b'"compaction"', b'"sleep"'),
        ENCODED[1].replace(b"T2JqAQD/", b"?"),
    ],
)
def test_a_damaged_entry_is_corruption(payload: bytes) -> None:
    with pytest.raises(CorruptTable) as raised:
        decode_entry(payload, "some/path")
    assert raised.value.path == "some/path"


@settings(deadline=None)
@given(st.sampled_from(ENCODED), st.data())
def test_any_damage_gives_an_entry_or_a_named_error(payload: bytes, data: st.DataObject) -> None:
    damaged = bytearray(payload)
    damaged[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        entry = decode_entry(bytes(damaged), "p")
    except (CorruptTable, InvalidRequest):
        return
    assert decode_entry(encode_entry(entry), "p") == entry


def torn_behind(storage: MemoryStorage, *entries: Entry) -> Ledger:
    """A ledger whose newest entry was cut short by a crash."""
    number = ledger_with(storage, *entries).next_number
    storage.put(entry_path(T, number), encode_entry(cancelled())[:-1])
    return read_ledger(storage, T)


def test_an_entry_that_was_cut_short_says_nothing_and_keeps_its_number() -> None:
    ledger = torn_behind(fresh_memory_storage(), claim(1))
    assert ledger == Ledger(T, (claim(1), Torn(2)))
    assert (ledger.ends_in, ledger.next_number) == (LedgerEnd.CLAIM, 3)
    assert torn_behind(fresh_memory_storage()).ends_in is LedgerEnd.NONE


@pytest.mark.parametrize("entry", [claim(3), cancelled()])
def test_anybody_may_go_on_behind_an_entry_that_was_cut_short(entry: Entry) -> None:
    storage = fresh_memory_storage()
    assert isinstance(append(storage, torn_behind(storage, claim(1)), entry), Appended)
    assert read_ledger(storage, T).entries == (claim(1), Torn(2), entry)


def test_an_attempt_does_not_commit_behind_an_entry_that_was_cut_short() -> None:
    storage = fresh_memory_storage()
    with pytest.raises(Defect):
        append(storage, torn_behind(storage, claim(1)), committed(1))


def test_what_was_committed_stays_so_when_its_withdrawal_was_cut_short() -> None:
    storage = fresh_memory_storage()
    ledger = torn_behind(storage, claim(1), committed(1))
    assert assert_may_publish(ledger) == committed(1)
    with pytest.raises(Defect):
        append(storage, ledger, claim(4))
    assert isinstance(append(storage, ledger, withdrawn()), Appended)


def test_losing_to_an_entry_that_was_cut_short_is_a_loss() -> None:
    storage = fresh_memory_storage()
    ledger = ledger_with(storage, claim(1))
    torn_behind(storage)
    assert append(storage, ledger, committed(1)) == LostTo(Torn(2))


def test_a_withdrawn_instant_is_never_published_again() -> None:
    with pytest.raises(Defect):
        assert_may_publish(Ledger(T, (claim(1), committed(1), withdrawn())))


LIVING = ((), (claim(1),), (claim(1), committed(1)))


@pytest.mark.parametrize("entries", LIVING)
def test_nobody_deletes_the_files_of_the_newest_attempt(entries: tuple[Entry, ...]) -> None:
    with pytest.raises(Defect) as raised:
        assert_may_delete(Ledger(T, entries), 1)
    assert (raised.value.code, raised.value.law) == ("law_broken", 1)


DEAD = ((claim(1), claim(2)), (claim(1), cancelled()), (cancelled(),), (withdrawn(),))


@pytest.mark.parametrize("entries", DEAD)
def test_files_of_a_superseded_or_cancelled_attempt_may_be_deleted(
    entries: tuple[Entry, ...],
) -> None:
    assert_may_delete(Ledger(T, entries), 1)


@pytest.mark.parametrize("entries", [(), (claim(1),), (claim(1), cancelled())])
def test_nobody_publishes_without_a_commit_in_the_ledger(entries: tuple[Entry, ...]) -> None:
    with pytest.raises(Defect) as raised:
        assert_may_publish(Ledger(T, entries))
    assert (raised.value.code, raised.value.law) == ("law_broken", 2)


def test_a_commit_in_the_ledger_allows_publishing() -> None:
    assert assert_may_publish(Ledger(T, (claim(1), committed(1)))) == committed(1)
