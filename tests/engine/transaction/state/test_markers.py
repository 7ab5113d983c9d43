"""Markers: what is announced is found again, ours and Java's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.markers import (
    MarkedFile,
    MarkerKind,
    delete_markers,
    leave_marker,
    marker_folder,
    marker_path,
    read_markers,
)
from tests.golden_tables import GoldenTable

T = "20260307222557123"
BASE = MarkedFile("p=a/q=b", "f_0-0-1_1.parquet")
LOG = MarkedFile("", ".f_1.log.1_0-0-1")


def test_direct_markers_are_named_as_in_java() -> None:
    assert marker_path(T, BASE, MarkerKind.MERGE) == (
        f".hoodie/.temp/{T}/p=a/q=b/f_0-0-1_1.parquet.marker.MERGE"
    )
    assert marker_path(T, LOG, MarkerKind.CREATE) == (
        f".hoodie/.temp/{T}/.f_1.log.1_0-0-1.marker.CREATE"
    )


def test_what_was_announced_is_read_and_deleted() -> None:
    storage = fresh_memory_storage()
    assert read_markers(storage, T) is None
    leave_marker(storage, T, BASE, MarkerKind.CREATE)
    leave_marker(storage, T, LOG, MarkerKind.CREATE)
    assert read_markers(storage, T) == (LOG, BASE)
    assert delete_markers(storage, T) == 2
    assert read_markers(storage, T) is None


def test_markers_of_javas_timeline_server_are_read(golden: GoldenTable) -> None:
    table = golden("mor_failed_write_pending")
    marked = read_markers(open_storage(Location(str(table))), "20261118130142221")
    assert marked is not None
    there = [
        path.relative_to(table).as_posix()
        for path in sorted(table.glob("p=*/*"))
        if "20261118130142221" in path.name
    ]
    assert sorted(file.path for file in marked) == there
    assert len(there) == 6


def test_markers_of_both_kinds_are_one() -> None:
    storage = fresh_memory_storage()
    leave_marker(storage, T, BASE, MarkerKind.CREATE)
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{marker_folder(T)}/MARKERS7", b"p=c/g_1-1-1_1.parquet.marker.CREATE\n")
    assert read_markers(storage, T) == (BASE, MarkedFile("p=c", "g_1-1-1_1.parquet"))


def test_blanks_belong_to_the_partition_that_a_line_names() -> None:
    storage = fresh_memory_storage()
    storage.put(f"{marker_folder(T)}/MARKERS0", b" /f_1.parquet.marker.CREATE\n")
    assert read_markers(storage, T) == (MarkedFile(" ", "f_1.parquet"),)


def test_checksums_that_hadoop_keeps_beside_markers_announce_nothing() -> None:
    storage = fresh_memory_storage()
    for file in (BASE, LOG):
        leave_marker(storage, T, file, MarkerKind.CREATE)
        folder, _, name = marker_path(T, file, MarkerKind.CREATE).rpartition("/")
        storage.put(f"{folder}/.{name}.crc", b"crc")
    assert read_markers(storage, T) == (LOG, BASE)


def test_a_line_that_was_cut_short_announces_nothing() -> None:
    storage = fresh_memory_storage()
    storage.put(f"{marker_folder(T)}/MARKERS0", b"p/f_1.parquet.marker.CREATE\np/g_1.parq")
    assert read_markers(storage, T) == (MarkedFile("p", "f_1.parquet"),)


@pytest.mark.parametrize(
    "line", [b"../f.marker.CREATE", b"f.parquet", b"/f.marker.CREATE", b"\xff"]
)
def test_a_line_that_is_no_marker_is_corruption(line: bytes) -> None:
    storage = fresh_memory_storage()
    storage.put(f"{marker_folder(T)}/MARKERS0", line + b"\n")
    with pytest.raises(CorruptTable):
        read_markers(storage, T)


@given(st.binary(max_size=200))
def test_any_bytes_are_markers_or_corruption(payload: bytes) -> None:
    storage = fresh_memory_storage()
    storage.put(f"{marker_folder(T)}/MARKERS0", payload)
    try:
        marked = read_markers(storage, T)
    except CorruptTable:
        return
    assert marked is not None
    assert all(".." not in file.path.split("/") for file in marked)
