"""Creating the files of instants."""

import pytest

from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Lost, Won
from lakewarden.engine.timeline.instants.instant import (
    Action,
    Instant,
    State,
    create_instant,
    layout_of,
)
from lakewarden.engine.timeline.timeline import load_active

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)
STATES = [
    Instant("10", Action.CLUSTERING, State.REQUESTED),
    Instant("10", Action.CLUSTERING, State.INFLIGHT),
    Instant("10", Action.REPLACE_COMMIT, State.COMPLETED, "11"),
]


def test_the_states_of_an_instant_are_files_beside_each_other() -> None:
    storage = fresh_memory_storage()
    for instant in STATES:
        assert create_instant(storage, LAYOUT, instant, b"content") == Won()
    (files,) = load_active(storage, LAYOUT).files
    assert [file.instant for file in files] == STATES


@pytest.mark.parametrize("instant", STATES, ids=str)
def test_a_file_that_is_there_stays(instant: Instant) -> None:
    storage = fresh_memory_storage()
    create_instant(storage, LAYOUT, instant, b"theirs")
    assert create_instant(storage, LAYOUT, instant, b"ours") == Lost(b"theirs")
