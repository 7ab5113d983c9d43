"""Early detection beside Java: a live write of Java's keeps a younger one of ours from beginning.

The tables were frozen while two Java writers held their markers; all that is missing is their next
heartbeat.
"""

import os
from pathlib import Path

import pyarrow.compute as pc
import pytest

from lakewarden import Conflict, Table
from tests.golden_tables import GoldenTable

ON = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.concurrency.early.conflict.detection.enable": "true",
}
FROZEN = (
    "cow_direct_two_writers",
    "cow_server_two_writers",
    "mor_direct_two_writers",
    "mor_server_two_writers",
    "cow_direct_unpartitioned",
    "cow_server_unpartitioned",
)
LONG_AGO = 1_000_000_000


def beat(path: Path, at: int | None = None) -> list[str]:
    """Have Java's writers give a heartbeat, now or at some time; their instants."""
    found = sorted((path / ".hoodie/.heartbeat").iterdir())
    for one in found:
        os.utime(one, None if at is None else (at, at))
    return [one.name for one in found]


def files_of(path: Path) -> set[Path]:
    found = (one.relative_to(path) for one in path.rglob("*") if one.is_file())
    return {one for one in found if ".hoodie" not in one.parts}


@pytest.mark.parametrize("name", FROZEN)
def test_a_write_gives_way_to_a_live_one_of_javas_before_its_first_file(
    name: str, golden_copy: GoldenTable
) -> None:
    path = golden_copy(f"markers/{name}")
    theirs = beat(path)
    table = Table(str(path))
    before = table.read_arrow()
    there = files_of(path)
    rows = before.select([one for one in before.column_names if not one.startswith("_hoodie_")])
    with pytest.raises(Conflict) as raised:
        table.upsert(rows, ON)
    assert raised.value.code == "early_write_conflict"
    assert (raised.value.owner, raised.value.instant) == ("Java Hudi", theirs[0])
    assert files_of(path) == there
    assert [one.requested for one in table.timeline().pending()] == theirs
    beat(path, LONG_AGO)
    table.upsert(rows, ON)
    assert not table.timeline().pending()
    key = [one for one in rows.column_names if pc.count_distinct(rows[one]).as_py() == len(rows)]
    found = table.read_arrow(rows.column_names)
    assert found.sort_by(key[0]).equals(rows.sort_by(key[0]))
