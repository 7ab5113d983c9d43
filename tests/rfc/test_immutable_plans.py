"""The RFC's rows for plans that are not cancellable, in simulated time.

X carries the plan out, and others act at one of his storage calls: while he is alive, in a pause
that is longer than he may be silent, or after his death there.
"""

from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.run.executor import ManualBackground
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.storage.port import Storage, unavailable
from lakewarden.engine.timeline.instants.instant import FOLDER_KEEPER
from tests.engine.transaction.hooked import Hook
from tests.rfc.plans import (
    BUSY,
    KINDS,
    LAZY,
    Answer,
    Kind,
    Trial,
    calls_of,
    codes,
    completions,
    places,
)

immutable = partial(Trial, cancellable=False)
LOST = {"superseded", "lock_lost", "lock_held"}


def every_call(kind: Kind) -> tuple[int, ...]:
    return tuple(places(1, calls_of(kind, cancellable=False)[1]))


def every_call_inflight(kind: Kind) -> tuple[int, ...]:
    return tuple(places(*calls_of(kind, cancellable=False)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_a(kind: Kind) -> None:
    """Several carry out one new plan: one attempt completes, the others fail or find it done."""
    for call in every_call(kind):
        immutable(kind).assert_one_of_three_completes(call)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b(kind: Kind) -> None:
    """Y begins after X has made it inflight: X alive keeps Y out, and completes."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        x, others = trial.executes_while(call, trial.executes)
        assert len(completions(x)) == 1
        assert completions(*others) == []
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b_when_x_pauses(kind: Kind) -> None:
    """Y takes X for dead, rolls his attempt back and completes; X finds out, and removes nothing
    but his own files. Past the point of no return X has committed, and Y finds it done."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        x, others = trial.executes_while(call, trial.pauses, trial.executes)
        assert len(completions(x, *others)) == 1
        assert codes(x) <= LOST
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b_when_x_dies(kind: Kind) -> None:
    """Whatever X has left, Y rolls it back and completes, or publishes what X had committed."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        trial.executes_until(call)
        assert codes(trial.executes()) <= BUSY
        trial.pauses()
        answer = trial.executes()
        assert codes(answer) == set()
        assert trial.is_completed
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_c(kind: Kind) -> None:
    """It is inflight already, by one who died, and X and Y begin with it: one of them completes."""
    died_at = calls_of(kind, cancellable=False)[0] + 8
    for call in every_call(kind):
        trial = immutable(kind)
        trial.executes_until(died_at)
        trial.pauses()
        trial.assert_one_of_three_completes(call)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_c_when_x_fails_in_between(kind: Kind) -> None:
    """X dies as well, before or after he has rolled back the first attempt: Y completes."""
    first, last = calls_of(kind, cancellable=False)
    for call in places(1, last):
        trial = immutable(kind)
        trial.executes_until(first + 8)
        trial.pauses()
        trial.executes_until(call)
        trial.pauses()
        assert codes(trial.executes()) == set()
        assert trial.is_completed
        trial.assert_sound()


TRACES = (".hoodie/.temp/", ".hoodie/.heartbeat/", ".hoodie/.lakewarden/beats/")


@pytest.mark.parametrize("is_out_of_reach", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_attempt_that_was_superseded_says_so_and_leaves_no_trace(
    kind: Kind, is_out_of_reach: bool
) -> None:
    """It wakes up after another one has completed the plan, and so do its heartbeats; where its
    folders are gone by then, the storage fails for that reason only."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        awake = Awakening(trial, call, fails=is_out_of_reach)
        answer = awake.executes()
        assert codes(answer) <= {"superseded"}, call
        there = [entry.path for entry in trial.world.storage.walk("")]
        traces = [path for path in there if path.startswith(TRACES)]
        assert [path for path in traces if not path.endswith(f"/{FOLDER_KEEPER}")] == [], call
        trial.assert_sound()


class Awakening:
    """An attempt at a plan that stands still at one of its calls until another one is through."""

    def __init__(self, trial: Trial, call: int, *, fails: bool) -> None:
        self._trial, self._fails = trial, fails
        hook = Hook(call, self._awakes)
        stage = hook.storage(cast(Storage, self))
        given = {**LAZY, **trial.kind.settings}
        self._context = trial.world.context(90, stage, **given)
        self._has_paused = False

    def executes(self) -> Answer:
        try:
            return execute(self._context, self._trial.kind.service, self._trial.plan)
        except LakewardenError as error:
            return error

    def _awakes(self) -> None:
        self._trial.pauses()
        self._trial.executes()
        self._has_paused = self._trial.is_completed
        background = self._context.ports.background
        assert isinstance(background, ManualBackground)
        background.tick()

    def __getattr__(self, name: str) -> object:
        found = getattr(self._trial.world.storage, name)
        return partial(self._made, found) if name in ("put", "create") else found

    def _made(self, found: Callable[..., object], path: str, *arguments: object) -> object:
        is_work = path.startswith(".hoodie/.temp/") or not path.startswith(".hoodie/")
        if self._fails and self._has_paused and is_work:
            raise unavailable("put", path, "Its folder is gone.")
        return found(path, *arguments)
