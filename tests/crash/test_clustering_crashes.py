"""A clustering that dies at any storage call changes no row, and another one can be made."""

import os

import pytest

from lakewarden.engine.services.clustering.service import CLUSTERING
from tests.crash.service_deaths import Mortal, assert_recovers, deaths
from tests.engine.services.service_table import MOR, inserted, new_service_world, row, updated
from tests.writing.model import Write
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
# Every so many places to die at, unless all of them are wanted, in several parts.
PARTS = 8 if IS_SIMULATION else 1
STRIDE = PARTS if IS_SIMULATION else 41
COPIED = {"lakewarden__clustering__copied_rows_min": "1"}
SORTED = {"hoodie__clustering__plan__strategy__sort__columns": "id"}
ADDED = Write("bulk_insert", tuple(row(f"n{number}", 1, "ab"[number % 2]) for number in range(4)))
HISTORIES = {
    # Row groups are copied, but where there are logs.
    Shape("cow"): (inserted(4), ADDED),
    MOR: (inserted(4), ADDED, updated(2, partitions="a")),
    Shape("mor", index="RECORD_INDEX"): (inserted(4), ADDED),
    Shape("cow", is_partitioned=False, has_metadata=False): (inserted(4), ADDED),
}
NEXT = updated(2, ts=9)
MORTALS = (
    Mortal(CLUSTERING, is_planned=False, arguments=COPIED),
    Mortal(CLUSTERING, is_planned=True, arguments=COPIED),
    Mortal(CLUSTERING, is_planned=True, is_cancellable=False, arguments=SORTED),
)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mortal", MORTALS, ids=str)
@pytest.mark.parametrize("shape", list(HISTORIES)[: None if IS_SIMULATION else 2], ids=str)
def test_a_clustering_that_dies_changes_no_row(shape: Shape, mortal: Mortal, part: int) -> None:
    history = HISTORIES[shape]
    before = new_service_world(shape, *history)
    mortal.prepare(before)
    for death, world in deaths(before, mortal, first=part, stride=STRIDE):
        assert_recovers(world, shape, mortal, (*history, NEXT), death)
