"""Killing: real processes on a real disk die at random moments, and no acknowledged row is lost."""

import os
from pathlib import Path
from random import Random

import pytest

from lakewarden import Table
from tests.crash.killed_writers import Hatchery, live_for, write_number
from tests.writing.model import ModelRow, contents_of
from tests.writing.shapes import Shape

# `make simulate` kills as often as it is told here.
KILLS = int(os.environ.get("LAKEWARDEN_KILLS", "24"))
SEED = int(os.environ.get("LAKEWARDEN_SEED", "20261118"))
LIFE_SECONDS_MAX = 0.6
SHAPES = (Shape("cow", index="SIMPLE"), Shape("mor", index="RECORD_INDEX"))


def contents_after(shape: Shape, count: int) -> list[ModelRow]:
    """The rows after the first writes of the sequence."""
    model = shape.model()
    for number in range(count):
        model.apply(write_number(number))
    return model.contents()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_acknowledged_write_is_lost_and_no_other_one_is_seen_in_part(
    shape: Shape, disk_path: Path
) -> None:
    random = Random(SEED)
    place, notes = disk_path / "table", disk_path / "acknowledged"
    shape.create(str(place))
    done = 0
    with Hatchery() as hatchery:
        for kill in range(KILLS // len(SHAPES)):
            notes.write_text("")
            pid = hatchery.hatch(place, done, notes)
            live_for(random.uniform(0.02, LIFE_SECONDS_MAX), pid)
            acknowledged = [int(line) for line in notes.read_text().split()]
            done = max([done, *(number + 1 for number in acknowledged)])
            found = contents_of(Table(str(place)).read_arrow())
            assert found == contents_of(Table(str(place)).read_arrow(use_metadata=False))
            if found == contents_after(shape, done + 1):
                # The last one had committed, and did not live to tell.
                done += 1
            assert found == contents_after(shape, done), f"seed {SEED}, kill {kill}"
    table = Table(str(place))
    table.upsert(write_number(0).table().slice(0, 0))
    assert contents_of(table.read_arrow()) == contents_after(shape, done)
    assert not table.timeline().pending()
