"""Races: engine code under a scheduler that changes turns at every storage call.

Most runs have no lock that excludes anybody, so that what is promised rests on the ledger alone.
Each run is replayed by its seed.
"""

from collections.abc import Callable

import pytest

from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Cancelled, Committed
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.abort_attempt import abort_attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import Cancellation, Ending, cancel
from lakewarden.engine.transaction.commit import Receipt
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.locks.turns import Turns
from tests.engine.transaction.fake_locks import PLAN, NoLock
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    TransactionTable,
    Writer,
)

SEEDS = range(60)
PAUSE_MS = 600_000
Answer = Receipt | Cancellation | LakewardenError | None


class Race:
    """A world whose writers take turns, with or without a lock."""

    def __init__(self, seed: int, *, has_lock: bool = False) -> None:
        self.world = TransactionTable()
        self._turns = Turns(seed)
        self._has_lock = has_lock
        self._works: list[Callable[[], Answer]] = []

    def joins(self, act: Callable[[Writer], Answer], *, ahead_ms: int = 0, after: int = 0) -> None:
        """Let one more take part, after some turns; an error of ours is an answer like any other.

        One whose clock is ahead takes the others for dead, as if they had paused for long.
        """
        settings = {"lakewarden__clock__skew_max_seconds": "100000"}
        if self._has_lock:
            settings["hoodie__write__lock__provider"] = "filesystem"
        own = self.world.writer(
            storage=self._turns.storage,
            lock=None if self._has_lock else NoLock,
            ahead_ms=ahead_ms,
            **settings,
        )

        def work() -> Answer:
            try:
                for _ in range(after):
                    own.storage.stat("nothing")
                return act(own)
            except LakewardenError as error:
                return error

        self._works.append(work)

    def run(self) -> list[Answer]:
        return self._turns.run(self._works)

    def settles(self) -> None:
        """All attempts are over and everything late is swept."""
        for wait_ms in (DEAD_AFTER_MS, DEAD_AFTER_MS, SWEPT_AFTER_MS):
            self.world.clock.advance(wait_ms)
            last = self.world.writer(lakewarden__clock__skew_max_seconds="100000").context
            recover_failed_instants(last)
            sweep(last)


def executes(plan: str) -> Callable[[Writer], Answer]:
    """One who carries a plan out, or finds out that he may not."""

    def act(own: Writer) -> Answer:
        attempt = start(own.context, plan).attempt
        if attempt is None:
            return None
        with attempt:
            stat = own.write_file(attempt, "f1")
            try:
                return own.commit(attempt, stat)
            except Conflict as loss:
                abort_attempt(own.context, attempt, str(loss))
                raise

    return act


@pytest.mark.parametrize("seed", SEEDS)
def test_attempts_and_a_cancel_race_for_one_plan_without_any_lock(seed: int) -> None:
    race = Race(seed)
    world = race.world
    plan = publish(world.writer().context, Action.COMPACTION, PLAN, claims=False).instant
    race.joins(executes(plan))
    race.joins(executes(plan), ahead_ms=PAUSE_MS, after=seed % 7)
    race.joins(lambda own: cancel(own.context, plan, "in the way", force=True), after=seed % 60)
    answers = race.run()
    race.settles()
    receipts = [answer for answer in answers if isinstance(answer, Receipt)]
    (cancellation,) = answers[2:]
    end = read_ledger(world.storage, plan).last
    completed = {i.requested for i in world.timeline().completed()}
    assert len(receipts) <= 1
    assert isinstance(end, Committed) == bool(receipts) == (plan in completed)
    if isinstance(cancellation, Cancellation) and cancellation.outcome is Ending.CANCELLED:
        assert isinstance(end, Cancelled)
        assert receipts == []
    # What was committed is there, and nothing else is.
    assert world.committed_files() == world.data_files() == world.visible()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_acknowledged_write_is_lost_while_others_settle_without_any_lock(seed: int) -> None:
    race = Race(seed)
    world = race.world
    for file_id in ("f1", "f2", "f3"):
        race.joins(lambda own, file_id=file_id: own.write(file_id))  # type: ignore[misc]
    race.joins(
        lambda own: recover_failed_instants(own.context) and None,
        ahead_ms=PAUSE_MS,
        after=seed % 40,
    )
    answers = race.run()
    race.settles()
    assert_exactly(world, answers)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_lock_one_of_two_writes_to_a_file_group_gives_way(seed: int) -> None:
    race = Race(seed, has_lock=True)
    world = race.world
    for file_id in ("f1", "f1", "f2"):
        race.joins(lambda own, file_id=file_id: own.write(file_id))  # type: ignore[misc]
    answers = race.run()
    race.settles()
    assert_exactly(world, answers)
    assert isinstance(answers[2], Receipt)
    for answer in answers[:2]:
        assert isinstance(answer, Receipt) or answer.code == "write_conflict"  # type: ignore[union-attr]
    assert any(isinstance(answer, Receipt) for answer in answers[:2])


def assert_exactly(world: TransactionTable, answers: list[Answer]) -> None:
    """The acknowledged writes are on the timeline, each once; of the others nothing is left."""
    acknowledged = {answer.instant for answer in answers if isinstance(answer, Receipt)}
    completed = [i.requested for i in world.timeline().completed()]
    assert sorted(completed) == sorted(acknowledged)
    assert world.timeline().pending() == ()
    assert world.data_files() == world.committed_files()
