"""The local executor: results in order, tasks no further ahead than asked, failures raised."""

import threading
from collections.abc import Iterator

import pytest

from lakewarden.engine.run.executor import LocalExecutor

WORKERS = (1, 2, 5)


@pytest.mark.parametrize("workers", WORKERS)
def test_results_come_in_the_order_of_the_tasks(workers: int) -> None:
    assert list(LocalExecutor(workers).map(lambda n: n * n, range(50))) == [
        n * n for n in range(50)
    ]


@pytest.mark.parametrize("workers", WORKERS)
def test_tasks_may_come_one_by_one(workers: int) -> None:
    tasks = (n for n in range(50))
    assert list(LocalExecutor(workers).map(str, tasks)) == [str(n) for n in range(50)]


@pytest.mark.parametrize(("ahead", "started"), [(None, 3), (7, 8)])
def test_no_more_tasks_are_begun_than_may_wait(ahead: int | None, started: int) -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    results = LocalExecutor(2).map(str, tasks(), ahead=ahead)
    assert next(results) == "0"
    assert len(taken) == started
    results.close()


@pytest.mark.parametrize("workers", WORKERS)
def test_the_first_failure_is_raised(workers: int) -> None:
    results = LocalExecutor(workers).map(lambda n: 1 // (n - 3), range(10))
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_what_was_started_is_at_work_before_it_is_asked_for() -> None:
    started = threading.Event()
    LocalExecutor(2).start(started.set)
    assert started.wait(timeout=60)


@pytest.mark.parametrize("workers", WORKERS)
def test_what_was_started_is_done_once(workers: int) -> None:
    done: list[int] = []
    result = LocalExecutor(workers).start(lambda: done.append(1) or "result")
    assert [result(), result()] == ["result", "result"]
    assert done == [1]


@pytest.mark.parametrize("workers", WORKERS)
def test_what_was_started_and_failed_says_so_when_asked(workers: int) -> None:
    result = LocalExecutor(workers).start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        result()
