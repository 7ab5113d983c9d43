"""Readers see the same before and after an archival: rows, pasts, changes, times and columns."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.archive.run import archive, run_timeline_compaction
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.model import Story, Write
from tests.writing.shapes import Shape, carry_out

HISTORY = ".hoodie/timeline/history"
COW = Shape("cow", has_metadata=False)
MOR = Shape("mor", has_metadata=False)
DAY_MS = 86_400_000
SEEDS = 200 if "LAKEWARDEN_KILLS" in os.environ else 4


def settings_of(fewest: int, batch: int = 10) -> dict[str, object]:
    return {
        "hoodie__keep__min__commits": fewest,
        "hoodie__keep__max__commits": fewest + 1,
        "hoodie__clean__commits__retained": 1,
        "hoodie__compact__inline__max__delta__commits": 1,
        "hoodie__timeline__compaction__batch__size": batch,
    }


@dataclass(frozen=True)
class Sight:
    """Everything that a reader can ask of the past."""

    snapshot: object
    pasts: dict[str, object]
    changes: dict[tuple[str, str | None], object]
    times: dict[str, str | None]
    schemas: dict[str, pa.Schema]


def seen(world: ServiceWorld, times: list[tuple[str, str]]) -> Sight:
    """What readers see as of every instant, and between all completions of some."""
    table = world.table(70)
    state = load_snapshot(world.storage)
    ends = [completed for _, completed in times]
    windows = [(since, until) for since in ["0", *ends] for until in [None, *ends]]
    return Sight(
        answer(table.read_arrow),
        {requested: answer(partial(table.read_arrow, as_of=requested)) for requested, _ in times},
        {window: answer(partial(table.changes_arrow, *window)) for window in windows},
        {requested: state.timeline.completion_time(requested) for requested, _ in times},
        {requested: state.schema(requested).columns for requested, _ in times},
    )


def answer(ask: Callable[[], pa.Table]) -> object:
    """Rows in one order, or the kind of refusal."""
    try:
        rows = ask().to_pylist()
    except LakewardenError as error:
        return error.code
    return sorted(rows, key=lambda row: (row["_hoodie_record_key"], row["_hoodie_commit_seqno"]))


def completions(world: ServiceWorld) -> list[tuple[str, str]]:
    timeline = load_snapshot(world.storage).timeline
    return [
        (one.requested, one.completed or "")
        for one in timeline.instants()
        if one.action in COMPLETED_WRITES and one.is_completed
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_changes_for_readers_by_archiving(seed: int) -> None:
    selection = Random(seed)
    shape, batch = (COW, MOR)[seed % 2], (2, 10)[seed % 3 == 0]
    story = Story(seed, shape.model(), kinds=("upsert", "upsert", "insert", "delete"), keys=12)
    world = new_service_world(shape)
    for number, write in enumerate(story.writes(selection.randint(6, 9))):
        world.clock.advance(selection.choice([1, 1000, DAY_MS]))
        carry_out(world.table(number + 2), write)
    times = completions(world)
    before = seen(world, selection.sample(times, 2))
    chosen = [(requested, before.times[requested] or "") for requested in before.times]
    for fewest in range(len(times) - 2, 1, -2):
        assert archive(world.context(**settings_of(fewest, batch)))
    run_timeline_compaction(world.context(**settings_of(2, batch)))
    assert completions(world) == times
    assert seen(world, chosen) == before


def test_a_write_that_took_long_is_a_change_though_later_ones_are_active() -> None:
    """The archive goes by when instants began, and changes by when they completed."""
    world = new_service_world(COW, inserted(), *(updated(ts=at) for at in range(2, 6)))
    table, times = world.table(60), completions(world)
    complete_first_later(world, times[3][1])
    before = {end: answer(partial(table.changes_arrow, end)) for _, end in times}
    assert archive(world.context(**settings_of(2)))
    assert {end: answer(partial(table.changes_arrow, end)) for _, end in times} == before
    since = load_snapshot(world.storage).timeline.first_active
    assert since is not None
    changed = load_snapshot(world.storage).timeline.writes_completed_after(since)
    assert [one.requested for one in changed] == [times[at][0] for at in (0, 3, 4)]


def complete_first_later(world: ServiceWorld, time: str) -> None:
    """Have the first write completed right after a time, as if it had been long under way."""
    active = world.table(62).timeline()
    first = active.completed()[0]
    path, completed = active.path(first), f"{int(time) + 1}"
    world.storage.put(path.replace(first.completed or "", completed), world.storage.read(path))
    world.storage.delete(path)


def test_files_of_the_archive_that_are_much_older_than_a_window_are_not_read() -> None:
    world = new_service_world(COW, inserted(), *(updated(ts=at) for at in range(2, 6)))
    archive(world.context(**settings_of(2)))
    newest = completions(world)[-1][1]
    world.write(updated(ts=6))
    assert archive_reads(world, newest) == 1
    world.clock.advance(3 * DAY_MS)
    world.write(updated(ts=7))
    newest = completions(world)[-1][1]
    world.write(updated(ts=8))
    assert archive_reads(world, newest) == 0


def archive_reads(world: ServiceWorld, since: str) -> int:
    """How many files of the archive are read for the changes since a time."""
    storage = FaultyStorage(world.storage)
    assert len(world.table(60, storage).changes_arrow(since)) == 6
    paths = [call.path for call in storage.calls if call.operation == "open"]
    return sum(path.startswith(HISTORY) for path in paths)


class Interrupted:
    """A storage before whose nth call something happens; those below it count with it."""

    def __init__(self, inner: Storage, at: int, happening: Callable[[], object]) -> None:
        self._inner = inner
        self._happening = happening
        self._left = [at]

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name in ("location", "below", "uri") or not callable(found):
            return found
        self._left[0] -= 1
        if self._left[0] == 0:
            self._happening()
        return found


def read_some(table: Table, since: str, as_of: str) -> list[object]:
    asked = (
        table.read_arrow,
        partial(table.changes_arrow, since),
        partial(table.read_arrow, as_of=as_of),
    )
    return [answer(ask) for ask in asked]


def test_whoever_reads_while_an_archival_goes_on_sees_no_difference() -> None:
    world = new_service_world(MOR, inserted(), Write("overwrite_partitions", inserted(2).rows))
    world.write(*(updated(ts=at) for at in range(3, 8)))
    for entry in world.storage.walk(""):
        # The files that were replaced are gone, as after a clean.
        if f"_{world.table(60).timeline().completed()[0].requested}." in entry.path:
            world.storage.delete(entry.path)
    times = completions(world)
    since, as_of = times[2][1], times[-1][0]
    expected = read_some(world.table(60), since, as_of)
    faulty = FaultyStorage(world.storage)
    assert read_some(world.table(60, faulty), since, as_of) == expected
    calls = len(faulty.calls)
    assert calls > 20
    for at in range(1, calls + 1, 1 if SEEDS > 4 else 8):
        again = world.copy()

        def archived(world: ServiceWorld = again) -> None:
            assert len(archive(world.context(61, **settings_of(2))).instants) > 2

        table = again.table(60, Interrupted(again.storage, at, archived))
        assert read_some(table, since, as_of) == expected, f"archived before call {at}"
