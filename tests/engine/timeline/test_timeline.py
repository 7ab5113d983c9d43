"""The timeline as a whole: when an instant completed, wherever it is."""

from collections.abc import Iterable

import pytest

from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.writer import archive
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, layout_of
from lakewarden.engine.timeline.timeline import Timeline
from tests.golden_tables import GoldenDocument, GoldenTable

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)


def timeline_of(active: Iterable[str], archived: Iterable[Instant] = ()) -> Timeline:
    storage = fresh_memory_storage()
    for name in active:
        storage.put(f"{LAYOUT.folder}/{name}", b"")
    rows = [ArchivedInstant(instant) for instant in archived]
    if rows:
        archive(storage, LAYOUT.history_folder, rows)
    return Timeline.load(storage, LAYOUT)


def completed(requested: str, time: str, action: Action = Action.COMMIT) -> Instant:
    return Instant(requested, action, State.COMPLETED, time)


ACTIVE = ["30_35.commit", "40.inflight", "50_51.deltacommit", "50_59.savepoint", "20_21.clean"]
ARCHIVED = [completed("10", "15"), completed("12", "13", Action.CLEAN)]


@pytest.mark.parametrize(
    ("requested", "completion"),
    [
        ("30", "35"),
        ("40", None),
        ("50", "51"),
        ("20", "21"),
        ("10", "15"),
        ("12", "13"),
        ("11", "11"),
        ("45", None),
        ("60", None),
    ],
    ids=[
        "active",
        "pending",
        "of the write and not of its savepoint",
        "active though older than the first write",
        "archived",
        "archived service",
        "older than the timeline and forgotten",
        "between active instants and unknown",
        "later than the timeline",
    ],
)
def test_completion_time(requested: str, completion: str | None) -> None:
    timeline = timeline_of(ACTIVE, ARCHIVED)
    assert timeline.completion_time(requested) == completion
    assert timeline.is_completed(requested) == (completion is not None)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["savepoint", "deleted savepoint"])
def test_what_is_archived_beyond_a_savepoint_has_completed(*, is_deleted: bool) -> None:
    names = ["10_11.commit", "30_31.commit", *([] if is_deleted else ["10_12.savepoint"])]
    timeline = timeline_of(names, [completed("20", "25")])
    assert (timeline.completion_time("20"), timeline.is_completed("20")) == ("25", True)
    # Rolled back, or undone by a restore: what a writer that was paused leaves then is no row.
    assert (timeline.completion_time("21"), timeline.is_completed("21")) == (None, False)
    assert (timeline.completion_time("09"), timeline.is_completed("09")) == ("09", True)
    assert timeline.first_active == ("10" if is_deleted else "30")


def test_older_than_savepointed_writes_alone_all_has_completed() -> None:
    names = ["10_11.commit", "10_12.savepoint", "20_21.commit", "20_22.savepoint"]
    timeline = timeline_of(
        [*names, "40_41.restore"], [completed("09", "09"), completed("15", "16")]
    )
    times = ("08", "09", "15", "16", "30", "50")
    assert [one for one in times if timeline.is_completed(one)] == ["08", "09", "15"]
    assert timeline.completion_time("15") == "16"
    assert timeline.first_active is None


def test_without_any_write_only_the_archive_knows_what_has_completed() -> None:
    timeline = timeline_of(["40_41.restore"], [completed("09", "10")])
    assert [one for one in ("08", "09", "30") if timeline.is_completed(one)] == ["09"]


def test_of_instants_with_the_same_time_the_write_is_asked_for() -> None:
    timeline = timeline_of(["10_11.commit", "10.rollback.requested", "20_21.commit"])
    assert timeline.completion_time("10") == "11"


def test_an_empty_timeline_knows_of_no_completion() -> None:
    timeline = timeline_of([])
    assert timeline.first_active is None
    assert timeline.completion_time("10") is None
    assert not timeline.is_completed("10")


def test_an_instant_both_active_and_archived_counts_once() -> None:
    timeline = timeline_of(["10_15.commit", "30.inflight"], ARCHIVED)
    assert [i.requested for i in timeline.instants()] == ["10", "12", "30"]


def test_a_golden_table_has_its_archived_and_its_active_instants(
    golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    name = "mor_archived_lsm_levels"
    storage = LocalStorage(Location(str(golden(name))))
    timeline = Timeline.load(storage, LAYOUT)
    document = golden_document(name)["timeline"]
    expected = [(i["requested"], i["completed"]) for i in document["archived"] + document["active"]]
    assert [(i.requested, i.completed) for i in timeline.instants()] == expected
    for requested, completion in expected:
        assert timeline.completion_time(requested) == completion
