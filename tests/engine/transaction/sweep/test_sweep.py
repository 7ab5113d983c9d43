"""Sweeps: what a paused attempt writes after its rollback is found and removed later."""

from collections.abc import Callable
from itertools import count

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.markers import (
    MarkedFile,
    MarkerKind,
    leave_marker,
    marker_folder,
    read_markers,
)
from lakewarden.engine.transaction.sweep.sweep import Swept, sweep, sweep_path
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    TransactionTable,
    Writer,
)


def paused() -> tuple[TransactionTable, Writer, str]:
    """A writer who was taken for dead, rolled back, and wakes up to write one more file."""
    world = TransactionTable()
    world.writer().write("f1")
    slow = world.writer()
    attempt = slow.begin()
    slow.write_file(attempt, "f2")
    world.clock.advance(DEAD_AFTER_MS)
    cancel(world.writer().context, attempt.instant, "dead")
    slow.write_file(attempt, "f3", partition="p=late")
    return world, slow, attempt.instant


def test_a_late_file_is_not_seen_and_goes_with_the_sweep() -> None:
    world, _, instant = paused()
    assert world.visible() == world.committed_files()
    assert len(world.data_files()) == 2
    assert sweep(world.writer().context) == ()
    world.clock.advance(SWEPT_AFTER_MS)
    assert sweep(world.writer().context) == (Swept(instant, 1),)
    assert world.data_files() == world.committed_files()
    assert read_markers(world.storage, instant) is None


def test_a_sweep_is_done_once() -> None:
    world, _, _ = paused()
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(world.writer().context)
    before = world.storage.walk("")
    assert sweep(world.writer().context) == ()
    assert world.storage.walk("") == before


def test_a_commit_sweeps_what_is_due_for_others() -> None:
    world, _, _ = paused()
    world.clock.advance(SWEPT_AFTER_MS)
    world.writer().write("f9")
    assert world.data_files() == world.committed_files()


def test_whenever_a_paused_attempt_announces_a_file_it_goes_with_the_sweep() -> None:
    for at in count(1):
        world = TransactionTable()
        slow = world.writer()
        attempt = slow.begin()
        world.clock.advance(DEAD_AFTER_MS)
        late = MarkedFile("p=late", f"f3_0-0-1_{attempt.instant}.parquet")
        announces = announcing(world, late, attempt.instant)
        hook = Hook(at, announces, of=("walk", marker_folder(attempt.instant)))
        cancel(world.writer(storage=hook.storage).context, attempt.instant, "dead")
        if not hook.has_happened:
            break
        world.storage.put(f"p=late/{PARTITION_METADATA}", b"#partition metadata\n")
        world.storage.put(late.path, b"late")
        world.clock.advance(SWEPT_AFTER_MS)
        sweep(world.writer().context)
        assert world.data_files() == frozenset(), at
    assert at > 4


def announcing(world: TransactionTable, file: MarkedFile, instant: str) -> Callable[[], None]:
    return lambda: leave_marker(world.storage, instant, file, MarkerKind.CREATE)


def test_law_1_nothing_is_swept_whose_ledger_does_not_allow_it() -> None:
    world = TransactionTable()
    instant = world.writer().write("f1").instant
    assert read_ledger(world.storage, instant).ends_in is LedgerEnd.COMMITTED
    path = sweep_path(1, instant)
    world.storage.put(path, b'{"format": 1, "kind": "sweep"}')
    assert sweep(world.writer().context) == (Swept(instant, 0),)
    assert len(world.visible()) == 1
    assert world.storage.stat(path) is None


def test_files_that_are_no_sweeps_are_ignored() -> None:
    world = TransactionTable()
    for name in ("x.json", "1.2.json.tmp", "99.x.json"):
        world.storage.put(f".hoodie/.lakewarden/sweeps/{name}", b"?")
    assert sweep(world.writer().context) == ()
