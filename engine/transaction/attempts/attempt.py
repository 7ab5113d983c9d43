"""Attempts: one try at carrying an instant out, alive as long as it says so.

The heartbeat tells others that work goes on; it is no licence. Whether an attempt may go on is
decided by the ledger alone: as long as its claim is the last entry there.

Steps of `work`: heartbeat, check-claim, look, list, marker, file. They repeat, until all files of
the attempt are there and it commits.

Completion: how every instant ends well, by the last steps of a commit under the lock.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from lakewarden.engine.kernel.errors import Conflict, LakewardenError, Unavailable
from lakewarden.engine.kernel.events import ATTEMPT_ENDED, PROGRESS, Event, Figures
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.run.executor import Repetition, try_again
from lakewarden.engine.run.processes import always_wanted, interruption_watch
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.heartbeats import (
    Heartbeat,
    delete_heartbeat,
    delete_standard_heartbeat,
    touch_standard_heartbeat,
    write_heartbeat,
    write_own_heartbeat,
)
from lakewarden.engine.timeline.instants.instant import Action, Instant, Layout, State
from lakewarden.engine.timeline.ledger.entries import (
    Cancelled,
    Claim,
    Committed,
    Entry,
    Fenced,
    Torn,
)
from lakewarden.engine.timeline.ledger.ledger import Ledger, LostTo, read_ledger, read_on
from lakewarden.engine.timeline.roll_forward import roll_forward
from lakewarden.engine.transaction.state.claims import append_entry
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.settings import (
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    TOUCH_MS,
)

# Twice in each interval, so that one request that fails does not make an attempt look dead.
HEARTBEATS_PER_INTERVAL = 2
LOOK_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far the work is, as the heartbeats tell it."""

    step: str = ""
    done: int = 0
    total: int = 0
    bytes: int = 0


class Attempt:
    """A claimed attempt; as a context manager it always stops its heartbeats at the end."""

    def __init__(
        self, context: Context, layout: Layout, claim: Claim, ledger: Ledger | None = None
    ) -> None:
        self.instant = claim.instant
        self.action: Action = claim.action
        self.number = claim.attempt
        self.owner = claim.owner
        self.layout = layout
        self._context = context
        self._claim = claim
        # As it was when it ended in the claim, if that is known.
        self._ledger = ledger
        self._named: Figures = {"action": self.action.value, "instant": self.instant}
        self._progress = _Progress()
        self._sequence = 0
        self._beaten_at = context.ports.clock.elapsed_seconds()
        self._looked_at = self._beaten_at
        self._silenced_by: LakewardenError | None = None
        self._is_interrupted = interruption_watch()
        self._watch: Callable[[], None] = always_wanted
        # How many committers and writes had fenced it when it last looked at its ledger.
        self.fences = 0
        self._repetition: Repetition | None = None

    @property
    def claim(self) -> Claim:
        return self._claim

    def write_token(self, task: int) -> str:
        """What the names of a task's files carry: no two attempts ever write the same file."""
        return f"{task}-0-{self.number}"

    def begin(self, *, has_first_sign: bool = False) -> Self:
        """Give the first heartbeat, and go on giving them in the background.

        Java need not be given another one right after that which came before a new instant.
        """
        try:
            self._send_heartbeat(write_own_heartbeat if has_first_sign else write_heartbeat)
        except BaseException:
            # The heartbeat may exist all the same, and no other process would remove it.
            self._delete_heartbeats(leaves_plan=False)
            raise
        touched = self._context.settings[TOUCH_MS] / 1000
        self._repetition = self._context.ports.background.repeat(
            self._heartbeat, every_seconds=min(touched or math.inf, self._heartbeat_seconds)
        )
        return self

    @property
    def _heartbeat_seconds(self) -> float:
        interval_ms = self._context.settings[HEARTBEAT_INTERVAL_MS]
        return interval_ms / 1000 / HEARTBEATS_PER_INTERVAL

    def tell(self, step: str, *, done: int = 0, total: int = 0, bytes_done: int = 0) -> None:
        """Say how far the work is: to the caller at once, to others with the next heartbeat."""
        self._progress = _Progress(step, done, total, bytes_done)
        figures: Figures = {"step": step, "done": done, "total": total}
        self._context.ports.events(Event(PROGRESS, {**self._named, **figures}))

    def assert_mine(self) -> None:
        """Raise unless the attempt may go on; looks at the ledger once a second at most."""
        if self._silenced_by is not None:
            raise _silenced(self, self._silenced_by) from self._silenced_by
        if self._is_interrupted():
            raise _interrupted(self)
        self._context.ports.check_wanted()
        now = self._context.ports.clock.elapsed_seconds()
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            self._looked_at = now
            # A storage out of reach for a moment is no reason to stop; for long, the heartbeats
            # tell.
            with suppress(Unavailable):
                self.check_claim()
        self._watch()

    def watch_with(self, watch: Callable[[], None]) -> None:
        """Have `assert_mine` ask this, too; it raises if the attempt is to end."""
        self._watch = watch

    def check_claim(self) -> Ledger:
        """Step `work.check-claim`: the ledger as it is now; raises unless it ends in this claim."""
        ledger = assert_last(self._context.storage, self._claim, self._ledger)
        self._looked_at = self._context.ports.clock.elapsed_seconds()
        self.fences = sum(isinstance(entry, Fenced) for entry in ledger.entries)
        return ledger

    def stop_heartbeats(self) -> bool:
        """Stop the heartbeats, leave the last one for the cleanup; False if they had stopped."""
        if self._repetition is None:
            return False
        self._repetition.stop()
        self._repetition = None
        self._context.ports.events(Event(ATTEMPT_ENDED, self._named))
        return True

    def stop(self, *, leaves_plan: bool = False) -> None:
        """Stop the heartbeats and remove the last one, so that no process waits for a dead attempt.

        Where a plan is left for the next attempt, the heartbeat that Java sees goes as well. It
        belongs to all attempts, but none can have started while this one has a heartbeat.
        """
        if self.stop_heartbeats():
            self._delete_heartbeats(leaves_plan=leaves_plan)

    def _delete_heartbeats(self, *, leaves_plan: bool) -> None:
        storage, ports = self._context.storage, self._context.ports

        def delete() -> None:
            if leaves_plan:
                delete_standard_heartbeat(storage, self.instant)
            delete_heartbeat(storage, self.instant, self.number)

        try:
            delete()
        except LakewardenError as error:
            # Left behind it expires by itself, but until then others wait for this attempt.
            ports.events(Event("beat_left_behind", {"reason": str(error)}))
            settings = self._context.settings
            most = settings[HEARTBEAT_MISSES] * settings[HEARTBEAT_INTERVAL_MS] / 1000
            try_again(ports.background, ports.clock, delete, most_seconds=most)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _heartbeat(self) -> None:
        """Step `work.heartbeat`, in the background: a failure is kept, and ends the attempt.

        Where Java writers are less patient, only theirs is touched in between.
        """
        since = self._context.ports.clock.elapsed_seconds() - self._beaten_at
        is_between = bool(self._context.settings[TOUCH_MS]) and since < self._heartbeat_seconds
        try:
            if is_between:
                touch_standard_heartbeat(self._context.storage, self.instant)
            else:
                self._send_heartbeat()
        except LakewardenError as error:
            silent = self._context.ports.clock.elapsed_seconds() - self._beaten_at
            settings = self._context.settings
            bearable = (settings[HEARTBEAT_MISSES] - 1) * settings[HEARTBEAT_INTERVAL_MS] / 1000
            if silent >= bearable:
                self._silenced_by = error

    def _send_heartbeat(
        self, write: Callable[[Storage, Heartbeat], None] = write_heartbeat
    ) -> None:
        self._sequence += 1
        progress = self._progress
        heartbeat = Heartbeat(
            instant=self.instant,
            attempt=self.number,
            owner=self.owner,
            sequence=self._sequence,
            at_ms=self._context.now_ms(),
            interval_ms=self._context.settings[HEARTBEAT_INTERVAL_MS],
            step=progress.step,
            done=progress.done,
            total=progress.total,
            bytes=progress.bytes,
        )
        write(self._context.storage, heartbeat)
        self._beaten_at = self._context.ports.clock.elapsed_seconds()


def assert_last(storage: Storage, claim: Claim, known: Ledger | None = None) -> Ledger:
    """The ledger as it is now; raises unless it still ends in this claim."""
    ledger = read_on(storage, known) if known else read_ledger(storage, claim.instant)
    if ledger.last != claim:
        raise superseded(claim, ledger.last)
    return ledger


def superseded(claim: Claim, last: Entry | Torn | None) -> Conflict:
    """Why the attempt with that claim may not go on, from what its ledger ends in instead."""
    match last:
        case Cancelled(by=by, reason=reason):
            code, why = "cancelled", f"{by} cancelled it: {reason.rstrip('.')}."
        case Claim(attempt=attempt, owner=owner, host=host):
            code, why = "superseded", f"Attempt {attempt} by {owner} on {host} took over."
        case Fenced(by=by):
            code, why = "fenced", f"Instant {by} was about to commit at the same time."
        case Committed(completion_time=completion_time):
            code, why = "superseded", f"Another attempt committed at {completion_time}."
        case _:
            code, why = "superseded", "Another entry follows its claim in the ledger."
    return Conflict(
        code,
        what=f"Attempt {claim.attempt} at {claim.action.value} {claim.instant} stopped.",
        why=why,
        now="The attempt has deleted its files. Look at the timeline for the instant's state.",
        instant=claim.instant,
        attempt=claim.attempt,
    )


def _interrupted(attempt: Attempt) -> Conflict:
    return Conflict(
        "interrupted",
        what=f"Attempt {attempt.number} at {attempt.action.value} {attempt.instant} stopped.",
        why="The process received a request to end.",
        now="Start it again.",
        instant=attempt.instant,
        attempt=attempt.number,
    )


def _silenced(attempt: Attempt, cause: LakewardenError) -> Conflict:
    return Conflict(
        "beats_failed",
        what=f"Attempt {attempt.number} at {attempt.action.value} {attempt.instant} stopped.",
        why=f"It could not write its heartbeat in time: {cause}",
        now="Check that the storage can be reached, then try again.",
        instant=attempt.instant,
        attempt=attempt.number,
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """An instant that has committed; one that is not published yet will be by the next operation.

    Its time is the one in the ledger, unless a writer without a ledger was quicker to complete it.
    """

    instant: Instant
    is_published: bool


def complete(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    ledger: Ledger,
    content: bytes,
    *,
    is_checked: bool = False,
    before_publish: Callable[[Ledger], None] = lambda _: None,
) -> Completion:
    """Commit and publish an instant whose ledger ends in the caller's claim.

    Steps `commit.time`, `commit.append` and `commit.publish`. A crash before `commit.append` leaves
    the instant pending; after it the instant is committed whatever happens, and anyone rolls it
    forward. The lock is asked for right before, unless the caller has just done so.
    """
    claim = ledger.last
    assert isinstance(claim, Claim)
    time = snapshot.times.next()
    assert time > claim.instant
    if not is_checked:
        held.assert_held()
    entry = Committed(
        instant=claim.instant,
        action=claim.action,
        attempt=claim.attempt,
        owner=claim.owner,
        at_ms=context.now_ms(),
        completion_time=time,
        content=content,
    )
    answer = append_entry(context, ledger, entry)
    if isinstance(answer, LostTo):
        raise superseded(claim, answer.entry)
    return _publish(context, snapshot, answer.ledger, entry, before_publish)


def _publish(
    context: Context,
    snapshot: Snapshot,
    ledger: Ledger,
    entry: Committed,
    before_publish: Callable[[Ledger], None],
) -> Completion:
    try:
        before_publish(ledger)
        rolled = roll_forward(context.storage, snapshot.timeline, ledger)
    except LakewardenError as error:
        # An error would say that the commit failed, and it has not.
        figures = {"instant": entry.instant, "reason": str(error)}
        context.ports.events(Event("committed_not_published", figures))
        action = entry.action.completed_as
        instant = Instant(entry.instant, action, State.COMPLETED, entry.completion_time)
        return Completion(instant, is_published=False)
    if rolled.is_new:
        # The next look at the table begins with it.
        path = snapshot.timeline.active.layout.path(rolled.instant)
        context.memory.completed.keep(path, entry.content)
    return Completion(rolled.instant, is_published=True)
