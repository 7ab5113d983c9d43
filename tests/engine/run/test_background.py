"""Work that repeats by threads, and what of it costs none."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden.engine.run.executor import Repetition, ThreadBackground

A_WHILE_SECONDS = 60.0


@contextmanager
def repeating(work: object, every_seconds: float) -> Iterator[Repetition]:
    repetition = ThreadBackground().repeat(work, every_seconds=every_seconds)  # type: ignore[arg-type]
    try:
        yield repetition
    finally:
        repetition.stop()


def test_work_repeats_until_it_is_stopped() -> None:
    turns = threading.Semaphore(0)
    with repeating(turns.release, 0.001):
        for _ in range(3):
            assert turns.acquire(timeout=A_WHILE_SECONDS)


def test_what_is_due_sooner_does_not_wait_for_what_is_due_later() -> None:
    done = threading.Event()
    with repeating(lambda: None, 3600), repeating(done.set, 0.001):
        assert done.wait(A_WHILE_SECONDS)


def test_work_is_not_kept_waiting_by_other_work() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        may_end.wait(A_WHILE_SECONDS)

    with repeating(slow, 0.001):
        assert begun.wait(A_WHILE_SECONDS)
        with repeating(done.set, 0.001):
            assert done.wait(A_WHILE_SECONDS)
        may_end.set()


def test_stopping_waits_for_a_run_under_way() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        may_end.wait(A_WHILE_SECONDS)
        ended.set()

    with repeating(slow, 0.001) as repetition:
        assert begun.wait(A_WHILE_SECONDS)
        threading.Timer(0.01, may_end.set).start()
        repetition.stop()
        assert ended.is_set()


def test_work_may_stop_itself() -> None:
    has_stopped, known = threading.Event(), threading.Event()
    found: list[Repetition] = []

    def once() -> None:
        known.wait(A_WHILE_SECONDS)
        found[0].stop()
        has_stopped.set()

    with repeating(once, 0.001) as repetition:
        found.append(repetition)
        known.set()
        assert has_stopped.wait(A_WHILE_SECONDS)


def test_what_is_stopped_before_it_is_due_shares_one_thread() -> None:
    before = threading.active_count()
    for _ in range(10):
        with repeating(lambda: None, 3600):
            assert threading.active_count() <= before + 1
