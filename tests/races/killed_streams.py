"""Streams: a process that writes batches is killed at random moments, and another goes on.

Run by `make torture-streams`. The next process begins with the first batch that was not
acknowledged, as Spark does. Batches are inserts, so that one that is written again shows.
"""

import argparse
import tempfile
from pathlib import Path
from random import Random

from lakewarden import Table
from tests.crash.killed_writers import BATCH_ROWS, Hatchery, batch_number, live_for

# Some batches, and the services after them.
LIFE_SECONDS_MAX = 3.0


def torture(place: Path, notes: Path, kills: int, seed: int) -> str:
    """What became of the batches; it fails where one is missing, half there or there twice."""
    random = Random(seed)
    columns = batch_number(0).schema
    Table.create(str(place), columns, key=["id"], type="mor", index="GLOBAL_RECORD_LEVEL_INDEX")
    notes.touch()
    there = unacknowledged = 0
    with Hatchery() as hatchery:
        for kill in range(kills):
            acknowledged = _acknowledged(notes)
            pid = hatchery.hatch(place, acknowledged, notes, is_stream=True)
            live_for(random.uniform(0.02, LIFE_SECONDS_MAX), pid)
            acknowledged = _acknowledged(notes)
            there = _batches(place, f"seed {seed}, kill {kill}")
            assert there - acknowledged in (0, 1), f"seed {seed}, kill {kill}"
            unacknowledged += there > acknowledged
    if there:
        again = Table(str(place)).insert(batch_number(there - 1), stream=("s", there - 1))
        assert again.is_repeated
        assert [one.batch for one in Table(str(place)).streams()] == [there - 1]
    said = f"{unacknowledged} left a batch that was committed and not acknowledged"
    return f"{kills} kills, {there} batches, each there once and in order; {said}"


def _acknowledged(notes: Path) -> int:
    return len(set(notes.read_text().split()))


def _batches(place: Path, case: str) -> int:
    """How many batches are in the table, which are the first ones, and whole."""
    found = sorted(Table(str(place)).read_arrow(columns=["batch"])["batch"].to_pylist())
    count = len(found) // BATCH_ROWS
    assert found == [number for number in range(count) for _ in range(BATCH_ROWS)], case
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(torture(Path(folder, "table"), Path(folder, "notes"), given.kills, given.seed))


if __name__ == "__main__":
    main()
