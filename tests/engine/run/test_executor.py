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


@pytest.mark.parametrize("workers", WORKERS)
def test_parts_of_tasks_come_in_their_order(workers: int) -> None:
    sizes = (3, 0, 7, 1, 4)
    found: dict[int, list[int]] = {}

    def parts(task: int) -> Iterator[tuple[int, int]]:
        for part in range(sizes[task]):
            yield task, part

    for task, part in LocalExecutor(workers).parts(parts, range(len(sizes))):
        found.setdefault(task, []).append(part)
    assert found == {task: list(range(size)) for task, size in enumerate(sizes) if size}


def test_no_more_parts_are_made_than_may_wait() -> None:
    made: list[int] = []

    def parts(task: int) -> Iterator[int]:
        for part in range(100):
            made.append(task)
            yield part

    found = LocalExecutor(2).parts(parts, range(10))
    for _ in range(10):
        next(found)
    found.close()
    assert len(made) <= 10 + 2 + 1
    assert set(made) <= {0, 1, 2}


@pytest.mark.parametrize("workers", WORKERS)
def test_a_part_that_fails_ends_the_others(workers: int) -> None:
    parts = LocalExecutor(workers).parts(lambda task: (1 // (n - 3) for n in range(9)), range(10))
    with pytest.raises(ZeroDivisionError):
        list(parts)


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
