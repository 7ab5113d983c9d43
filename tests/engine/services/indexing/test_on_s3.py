"""Indexes built on S3 beside writers, with its lock: killed, resumed, cancelled, as on a disk.

One kind of index a day in `make test`, all of them in `make simulate`.
"""

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import SystemClock
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.testing.faults import Crashed
from tests.all_kinds import differences
from tests.engine.services.indexing.builds_kit import Before
from tests.engine.storage.conftest import s3_location, s3_server
from tests.races.builds_beside_writers import KINDS, SCHEMA, Kind, row
from tests.sampling import sample

__all__ = ["s3_location", "s3_server"]

PROPERTIES = {"lakewarden.index.expression.timezone": "UTC"}
# What is written down of a file group that has its base file.
NOTED = r"builds/\d{17}/groups/.*\.json$"


def new_table(location: Location) -> Table:
    table = Table.create(
        location.uri,
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type="mor",
        properties=PROPERTIES,
        storage=open_storage(location),
    )
    table.drop_index("column_stats", if_exists=True)
    table.upsert([row(f"a-{number}", "a", number) for number in range(6)])
    return table


def die() -> None:
    raise Crashed


@pytest.mark.parametrize("kind", sample(KINDS, 7), ids=lambda kind: kind.name)
def test_a_build_on_s3_is_killed_and_resumed_beside_writers(
    kind: Kind, s3_location: Location
) -> None:
    table = new_table(s3_location)
    if kind.type == "secondary_index":
        KINDS[-2].build(table)
    storage = open_storage(s3_location)
    lock = open_lock(storage, Settings(), Ports())
    assert "storage" in lock.name

    def write() -> None:
        Table.on(open_storage(s3_location)).upsert([row("a-1", "a", 90), row("b-9", "b", 91)])

    def write_and_die() -> None:
        write()
        die()

    dying = Before(storage, SystemClock(), NOTED, write_and_die)
    with pytest.raises(Crashed):
        kind.build(Table.on(dying))
    write()
    kind.build(Table.on(open_storage(s3_location)))
    table = Table.on(open_storage(s3_location))
    assert not table.pending_indexing()
    assert differences(table) == []
    assert table.read_arrow().num_rows == 7
