"""Reading the archived timeline: Java's instants, their contents, and any damage."""

from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.instant_metadata import clean, commit, compaction
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.manifest import decode_manifest, encode_manifest
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.rows import archived_instants, read_rows
from lakewarden.engine.timeline.instants.instant import Action, Instant, State
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable, archive_of

HISTORY = ".hoodie/timeline/history"
LEVELS = "mor_archived_lsm_levels"
ARCHIVED_TABLES = (LEVELS, "mor_metadata_services")


def archive_of_table(table: Path) -> LsmArchive:
    return LsmArchive(LocalStorage(Location(str(table))), HISTORY)


def shown_by_java(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    archived = document["timeline"]["archived"]
    return [(i["requested"], i["action"], i["completed"]) for i in archived]


@pytest.mark.parametrize("name", [name for name in GOLDEN_TABLES if not name.startswith("v6")])
def test_instants_are_those_java_shows(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    instants = archive_of_table(golden(name)).instants()
    shown = [(i.requested, i.action.value, i.completed) for i in instants]
    assert shown == shown_by_java(golden_document(name))


@pytest.mark.parametrize("name", ARCHIVED_TABLES)
def test_contents_are_what_java_kept_of_an_instant(name: str, golden: GoldenTable) -> None:
    archive = archive_of_table(golden(name))
    for instant in archive.instants():
        row = archive.read(instant)
        assert row is not None
        assert row.metadata is not None
        if instant.action is Action.CLEAN:
            assert row.plan is not None
            cleaned = clean.decode(row.metadata, "p")
            assert cleaned.start_clean_time == instant.requested
            assert clean.decode_plan(row.plan, "p").policy
        elif commit.decode(row.metadata, "p").compacted:
            assert row.plan is not None
            assert compaction.decode_plan(row.plan, "p").operations
        else:
            assert row.plan is None


def test_the_archive_of_a_metadata_table_begins_with_its_first_instants(
    golden: GoldenTable,
) -> None:
    archive = archive_of_table(golden(LEVELS) / ".hoodie" / "metadata")
    first, second, *_ = archive.instants()
    assert (first.requested, second.requested) == ("0" * 17, "0" * 16 + "1")


def test_a_range_includes_both_ends(golden: GoldenTable) -> None:
    archive = archive_of_table(golden(LEVELS))
    every = archive.instants()
    assert archive.instants(every[3].requested, every[-2].requested) == every[3:-1]
    assert archive.instants(since=every[-1].requested) == every[-1:]
    assert archive.instants(until=every[0].requested) == every[:1]


def test_only_files_in_the_range_are_read_and_each_once(golden: GoldenTable) -> None:
    storage = in_memory(golden(LEVELS))
    archive = LsmArchive(storage, HISTORY)
    *others, newest = archive.snapshot.files
    for file in others:
        storage.delete(f"{HISTORY}/{file.name}")
    first = archive.completion_time(newest.first)
    storage.delete(f"{HISTORY}/{newest.name}")
    assert archive.completion_time(newest.first) == first is not None
    assert archive.completion_time(newest.last) is not None


def in_memory(table: Path) -> MemoryStorage:
    storage = fresh_memory_storage()
    for file in (table / HISTORY).iterdir():
        storage.put(f"{HISTORY}/{file.name}", file.read_bytes())
    return storage


def test_an_instant_that_is_not_archived_has_no_completion_time(golden: GoldenTable) -> None:
    archive = archive_of_table(golden(LEVELS))
    assert archive.completion_time("20000101000000000") is None
    assert archive.read(Instant("1", Action.CLEAN, State.COMPLETED, "2")) is None


def test_a_table_that_never_archived_has_an_empty_archive() -> None:
    assert LsmArchive(fresh_memory_storage(), HISTORY).instants() == ()


@pytest.mark.parametrize("content", [b"", b"not a number", b"-1"])
def test_without_a_version_the_newest_manifest_counts(content: bytes, golden: GoldenTable) -> None:
    storage = in_memory(golden(LEVELS))
    storage.put(f"{HISTORY}/_version_", content)
    assert LsmArchive(storage, HISTORY).snapshot.version == 14
    storage.delete(f"{HISTORY}/_version_")
    assert LsmArchive(storage, HISTORY).snapshot.version == 14


@pytest.mark.parametrize("name", ARCHIVED_TABLES)
def test_manifests_are_written_to_the_letter(name: str, golden: GoldenTable) -> None:
    manifests = sorted(golden(name).rglob("manifest_*"))
    for manifest in manifests:
        payload = manifest.read_bytes()
        assert encode_manifest(decode_manifest(payload, "p")) == payload
    assert manifests


@settings(deadline=None)
@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_are_a_manifest_or_corrupt(payload: bytes) -> None:
    with suppress(CorruptTable):
        decode_manifest(payload, "p")


with ZipFile(archive_of(LEVELS)) as packed:
    PARQUET = packed.read(f"{LEVELS}/{HISTORY}/20261118130408370_20261118130424456_0.parquet")


def rows_or_error(payload: bytes) -> object:
    try:
        return archived_instants(read_rows(pa.BufferReader(payload), "p"), "p")
    except CorruptTable as error:
        return error


@settings(deadline=None)
@given(st.data())
def test_a_damaged_file_gives_rows_or_is_corrupt(data: st.DataObject) -> None:
    payload = bytearray(PARQUET)
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    rows_or_error(bytes(payload))


@settings(deadline=None)
@given(st.integers(0, len(PARQUET) - 1))
def test_a_cut_file_is_corrupt(size: int) -> None:
    assert isinstance(rows_or_error(PARQUET[:size]), CorruptTable)


@settings(deadline=None)
@given(st.binary())
def test_random_bytes_are_corrupt(payload: bytes) -> None:
    assert isinstance(rows_or_error(payload), CorruptTable)
