"""The archived timeline of version 6, as Java reads it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.instant_metadata import clean, commit, compaction
from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.rows import LogArchive
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, layout_of
from lakewarden.engine.timeline.timeline import Timeline
from tests.golden_tables import GoldenDocument, GoldenTable

NAME = "v6_cow_archived"
FOLDER = ".hoodie/history"
FIRST_FILE = f"{FOLDER}/.commits_.archive.1_1-0-1"


def archive_in(table: Path, folder: str = FOLDER) -> LogArchive:
    return LogArchive(LocalStorage(Location(str(table))), folder)


def test_instants_are_those_java_shows(
    golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    archived = golden_document(NAME)["timeline"]["archived"]
    completed = [i for i in archived if i["state"] == "COMPLETED"]
    instants = archive_in(golden(NAME)).instants()
    assert [(i.requested, i.action.value, i.completed) for i in instants] == [
        (i["requested"], i["action"], i["completed"]) for i in completed
    ]


def test_contents_are_given_as_files_of_later_versions(golden: GoldenTable) -> None:
    archive = archive_in(golden(NAME))
    a_clean = next(i for i in archive.instants() if i.action is Action.CLEAN)
    for instant in (archive.instants()[0], a_clean):
        row = archive.read(instant)
        assert row is not None
        assert row.metadata is not None
        if instant is a_clean:
            assert row.plan is not None
            assert clean.decode(row.metadata, "p").start_clean_time == instant.requested
            assert clean.decode_plan(row.plan, "p").policy == "KEEP_LATEST_COMMITS"
        else:
            stats = commit.decode(row.metadata, "p").partition_to_write_stats
            assert {stat.path.split("_")[-1] for each in stats.values() for stat in each} == {
                f"{instant.requested}.parquet"
            }


def test_a_compaction_is_archived_as_one_instant_with_its_plan(golden: GoldenTable) -> None:
    archive = archive_in(golden(NAME) / ".hoodie" / "metadata", ".hoodie/archived")
    compactions = [i for i in archive.instants() if i.action is Action.COMMIT]
    assert compactions
    for instant in compactions:
        row = archive.read(instant)
        assert row is not None
        assert row.plan is not None
        assert compaction.decode_plan(row.plan, "p").operations


def test_an_instant_that_is_not_archived_is_not_found(golden: GoldenTable) -> None:
    archive = archive_in(golden(NAME))
    assert archive.read(Instant("1", Action.COMMIT, State.COMPLETED, "2")) is None
    assert archive.completion_time("1") is None


def test_a_range_includes_both_ends(golden: GoldenTable) -> None:
    archive = archive_in(golden(NAME))
    every = archive.instants()
    assert archive.instants(every[1].requested, every[3].requested) == every[1:4]
    assert archive.completion_time(every[1].requested) == every[1].completed


def test_the_timeline_takes_older_instants_for_completed_without_reading_the_archive(
    golden: GoldenTable,
) -> None:
    storage = fresh_memory_storage()
    storage.put(".hoodie/20.commit", b"")
    storage.put(f"{FOLDER}/.commits_.archive.1_1-0-1", b"#HUDI#torn")
    layout = layout_of({"hoodie.archivelog.folder": "history"}, local_zone=UTC)
    assert Timeline.load(storage, layout).completion_time("10") == "10"


@pytest.fixture(scope="module")
def archive_bytes(golden: GoldenTable) -> bytes:
    return (golden(NAME) / FIRST_FILE).read_bytes()


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_damaged_archive_gives_instants_or_a_named_error(
    archive_bytes: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(archive_bytes)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    storage = fresh_memory_storage()
    storage.put(FIRST_FILE, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    archive = LogArchive(storage, FOLDER)
    try:
        for instant in archive.instants()[:1]:
            archive.read(instant)
    except (CorruptTable, InvalidRequest):
        return
