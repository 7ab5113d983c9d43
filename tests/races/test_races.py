"""Races: two processes with two threads each write to one table at the same time."""

from pathlib import Path

import pytest

from lakewarden import Table
from tests.races.racer import SHARED_KEY, Report, own_row, reports_of, shared_row, start_racer
from tests.races.races_kit import IS_SIMULATION
from tests.writing.model import contents_of
from tests.writing.shapes import Shape

COMMITS = 50 if IS_SIMULATION else 8
PROCESSES = ("a", "b")
WRITERS = [f"{process}{thread}" for process in PROCESSES for thread in (0, 1)]
COW, MOR = Shape("cow", index="SIMPLE"), Shape("mor", index="RECORD_INDEX")
# `make simulate` races on both shapes in both ways.
EVERY_WAY = (COW, MOR) if IS_SIMULATION else ()


def run_race(path: Path, mode: str) -> list[Report]:
    """All reports of all racers."""
    racers = [start_racer(path, mode, process, COMMITS) for process in PROCESSES]
    return [report for racer in racers for report in reports_of(racer)]


def assert_instants(table: Table, reports: list[Report]) -> None:
    """Every acknowledged commit is there once, and times rise in the order of completion."""
    acknowledged = sorted(report["instant"] for report in reports if "instant" in report)
    completed = table.timeline().completed()
    ours = [instant for instant in completed if instant.requested in set(acknowledged)]
    assert [instant.requested for instant in ours] == acknowledged
    assert len(set(acknowledged)) == COMMITS * len(WRITERS)
    completions = [str(instant.completed) for instant in completed]
    assert len(set(completions)) == len(completions)
    assert all(instant.requested < str(instant.completed) for instant in completed)
    assert not table.timeline().pending()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", EVERY_WAY or (COW,), ids=str)
def test_writers_of_other_rows_do_not_disturb_one_another(shape: Shape, tmp_path: Path) -> None:
    table = shape.create(str(tmp_path / "table"))
    table.upsert([shared_row()])
    reports = run_race(tmp_path / "table", "disjoint")
    assert_instants(table, reports)
    rows = [own_row(writer, number) for writer in WRITERS for number in range(COMMITS)]
    expected = sorted([*rows, shared_row()], key=lambda row: (str(row["id"]), str(row["p"])))
    assert contents_of(table.read_arrow()) == expected
    assert contents_of(table.read_arrow(use_metadata=False)) == expected


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", EVERY_WAY or (MOR,), ids=str)
def test_no_update_of_a_row_that_everybody_wants_is_lost(shape: Shape, tmp_path: Path) -> None:
    table = shape.create(str(tmp_path / "table"))
    table.upsert([shared_row()])
    reports = run_race(tmp_path / "table", "overlapping")
    assert_instants(table, reports)
    lost = [report for report in reports if "lost" in report]
    assert lost, "nobody lost, so nothing was raced for"
    assert {report["lost"] for report in lost} == {"write_conflict"}
    completed = {instant.requested for instant in table.timeline().completed()}
    assert {report["to"] for report in lost} <= completed
    (row,) = contents_of(table.lookup([SHARED_KEY]))
    assert row["v"] == COMMITS * len(WRITERS)
