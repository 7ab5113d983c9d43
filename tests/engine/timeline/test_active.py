"""The active timeline: one listing, grouped and asked."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.clock import UTC, ManualClock
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, epoch_ms, layout_of
from lakewarden.engine.timeline.timeline import ActiveTimeline, load_active
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable
from tests.work_counting import counted

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)

# Zip archives keep modification times in steps of two seconds.
MODIFICATION_STEP_MS = 2000


def timeline_of(names: Iterable[str]) -> ActiveTimeline:
    return load_active(storage_with(names), LAYOUT)


def storage_with(names: Iterable[str]) -> MemoryStorage:
    storage = fresh_memory_storage()
    for name in names:
        storage.put(f"{LAYOUT.folder}/{name}", name.encode())
    return storage


def golden_timeline(table: Path) -> ActiveTimeline:
    storage = LocalStorage(Location(str(table)))
    payload = storage.read(".hoodie/hoodie.properties")
    layout = layout_of(parse_properties(payload, "p"), local_zone=UTC)
    return load_active(storage, layout)


def described(instants: Iterable[Instant]) -> list[tuple[str, str, str]]:
    return [(i.requested, i.action.value, i.state.name) for i in instants]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_instants_are_those_java_shows(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    expected = golden_document(name)["timeline"]["active"]
    instants = golden_timeline(golden(name)).instants
    assert described(instants) == [(i["requested"], i["action"], i["state"]) for i in expected]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_state_files_are_those_java_shows(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    expected = golden_document(name)["timeline"]["all_states"]
    files = [file for group in golden_timeline(golden(name)).files for file in group]
    shown = described(file.instant for file in files)
    assert shown == [(i["requested"], i["action"], i["state"]) for i in expected]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_completion_times_are_those_java_shows(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    document = golden_document(name)["timeline"]
    expected = [i["completed"] for i in document["active"] if i["state"] == "COMPLETED"]
    completed = golden_timeline(golden(name)).completed(frozenset(Action))
    found = [i.completed for i in completed]
    if document["table_version"] == 6:
        pairs = zip(expected, found, strict=True)
        assert all(lateness_ms(java, ours) < MODIFICATION_STEP_MS for java, ours in pairs)
    else:
        assert found == expected


def lateness_ms(late: str, early: str | None) -> int:
    assert early is not None
    late_ms, early_ms = epoch_ms(late, UTC), epoch_ms(early, UTC)
    assert late_ms is not None
    assert early_ms is not None
    assert late_ms >= early_ms
    return late_ms - early_ms


COMPACTED = ["2.compaction.requested", "2.compaction.inflight", "2_3.commit"]


def test_a_compaction_completes_as_a_commit_of_the_same_instant() -> None:
    (files,) = timeline_of(COMPACTED).files
    assert files.instant == Instant("2", Action.COMMIT, State.COMPLETED, "3")
    assert files.started_as is Action.COMPACTION


def test_the_files_of_an_instant_are_found_by_any_of_its_states() -> None:
    timeline = timeline_of(COMPACTED)
    for instant in (timeline.instants[0], Instant("2", Action.COMPACTION, State.REQUESTED)):
        assert timeline.files_of(instant) is timeline.files[0]


def test_a_savepoint_is_an_instant_beside_its_write() -> None:
    timeline = timeline_of(["2_3.deltacommit", "2.savepoint.inflight", "2_4.savepoint"])
    assert [i.action for i in timeline.with_time("2")] == [Action.DELTA_COMMIT, Action.SAVEPOINT]
    assert timeline.savepoints() == timeline.instants[1:]


def test_contents_are_read_when_asked_for() -> None:
    timeline = timeline_of(COMPACTED)
    plan = Instant("2", Action.COMPACTION, State.REQUESTED)
    assert timeline.read(plan) == b"2.compaction.requested"
    assert timeline.read(timeline.instants[0]) == b"2_3.commit"


def test_an_instant_that_is_not_there_cannot_be_read() -> None:
    with pytest.raises(InvalidRequest) as raised:
        timeline_of([]).read(Instant("2", Action.COMMIT, State.INFLIGHT))
    assert raised.value.code == "unknown_instant"


MIXED = [
    "1_9.commit",
    "2_3.deltacommit",
    "3.clustering.requested",
    "4.compaction.requested",
    "4.compaction.inflight",
    "5_6.clean",
    "6.deltacommit.requested",
    "6.inflight",
]


def test_completed_writes_come_in_the_order_of_requests() -> None:
    assert described(timeline_of(MIXED).completed()) == [
        ("1", "commit", "COMPLETED"),
        ("2", "deltacommit", "COMPLETED"),
    ]


def test_pending_instants_can_be_asked_for_by_service() -> None:
    timeline = timeline_of(MIXED)
    assert [i.requested for i in timeline.pending()] == ["3", "4", "6", "6"]
    assert described(timeline.pending((Action.COMPACTION,))) == [("4", "compaction", "INFLIGHT")]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, ["2", "5", "1"]),
        ("3", None, ["5", "1"]),
        ("2", "6", ["2", "5"]),
        (None, "3", ["2"]),
        ("9", None, []),
    ],
)
def test_a_range_of_completion_excludes_its_start_and_includes_its_end(
    since: str | None, until: str | None, expected: list[str]
) -> None:
    found = timeline_of(MIXED).completed_between(since, until, frozenset(Action))
    assert [i.requested for i in found] == expected


def test_the_newest_time_is_requested_or_of_completion() -> None:
    assert timeline_of(MIXED).newest_time() == "9"
    assert timeline_of(["1_2.commit", "3.inflight"]).newest_time() == "3"
    assert timeline_of([]).newest_time() is None


def test_a_savepointed_write_is_not_where_the_timeline_starts() -> None:
    timeline = timeline_of(["1_2.commit", "1_3.savepoint", "4_5.clean", "6.commit.requested"])
    first = timeline.first_write()
    assert first is not None
    assert first.requested == "6"


def test_two_completions_of_one_instant_are_corruption() -> None:
    with pytest.raises(CorruptTable) as raised:
        timeline_of(["1_2.commit", "1_3.commit"])
    assert raised.value.code == "two_completions"
    assert {raised.value.path, raised.value.other} == {
        f"{LAYOUT.folder}/1_2.commit",
        f"{LAYOUT.folder}/1_3.commit",
    }


def test_foreign_files_are_not_on_the_timeline() -> None:
    assert timeline_of(["x.txt", "1.claim", "1.claim.requested", ".1_2.commit.crc"]).files == ()


GROWING = [
    ["1.commit.requested", "1.inflight", "1_2.commit", "3.commit.requested"],
    # One is rolled back, one completes, one begins; a savepoint shares the time of its write.
    ["1.commit.requested", "1.inflight", "1_2.commit", "1_4.savepoint", "5.inflight"],
    ["1_2.commit", "5.compaction.requested", "5.inflight", "5_6.commit"],
    # It is taken back, and ends at another time.
    ["1_2.commit", "5.compaction.requested", "5.inflight", "5_9.commit"],
    ["5_9.commit"],
]


def test_a_look_with_an_earlier_one_shows_what_one_without_it_shows() -> None:
    # What stays has the time that it had, however long the test takes.
    storage, earlier = fresh_memory_storage(clock=ManualClock()), None
    for names in GROWING:
        storage.delete_folder(LAYOUT.folder)
        for name in names:
            storage.put(f"{LAYOUT.folder}/{name}", name.encode())
        earlier = load_active(storage, LAYOUT, earlier)
        afresh = load_active(storage, LAYOUT)
        assert [list(files) for files in earlier.files] == [list(files) for files in afresh.files]
        assert earlier.instants == afresh.instants


def test_a_second_completion_is_corruption_whatever_an_earlier_look_showed() -> None:
    storage = storage_with(["1_2.commit"])
    before = load_active(storage, LAYOUT)
    storage.put(f"{LAYOUT.folder}/1_3.commit", b"")
    with pytest.raises(CorruptTable) as raised:
        before.again()
    assert raised.value.code == "two_completions"


def test_what_is_left_of_a_settled_instant_is_looked_at_anew(tmp_path: Path) -> None:
    storage = LocalStorage(Location(str(tmp_path)))
    for name in COMPACTED:
        storage.put(f"{LAYOUT.folder}/{name}", b"before")
    before = load_active(storage, LAYOUT)
    assert counted(before.again).of("entry_of") == 0
    storage.delete(f"{LAYOUT.folder}/{COMPACTED[2]}")
    storage.put(f"{LAYOUT.folder}/{COMPACTED[1]}", b"another attempt")
    ((requested, inflight),) = before.again().files
    assert (requested.entry.size_bytes, inflight.entry.size_bytes) == (6, 15)


def test_a_completion_time_that_is_that_of_the_file_is_looked_at_anew(tmp_path: Path) -> None:
    layout = layout_of({"hoodie.table.version": "6"}, local_zone=UTC)
    storage = LocalStorage(Location(str(tmp_path)))
    storage.put(f"{layout.folder}/1.commit", b"")
    before = load_active(storage, layout)
    os.utime(tmp_path / layout.folder / "1.commit", (1, 1))
    (after,) = before.again().instants
    assert after.completed == "19700101000001000"


def test_a_table_without_a_timeline_folder_has_no_instants() -> None:
    assert load_active(fresh_memory_storage(), LAYOUT).instants == ()


def test_a_thousand_instants_open_in_well_under_a_tenth_of_a_second() -> None:
    storage = storage_with(
        name
        for at in range(20260101000000000, 20260101000001000)
        for name in (f"{at}.commit.requested", f"{at}.inflight", f"{at}_{at + 1}.commit")
    )
    durations = []
    for _ in range(5):
        started = time.process_time()
        timeline = load_active(storage, LAYOUT)
        durations.append(time.process_time() - started)
        assert len(timeline.instants) == 1000
    assert min(durations) < 0.1
