"""Items made in advance."""

import threading
from collections.abc import Iterator

import pytest

from lakewarden.engine.run.executor import ahead


@pytest.mark.parametrize("depth", [1, 3])
def test_items_keep_their_order(depth: int) -> None:
    assert list(ahead(range(20), depth=depth)) == list(range(20))


def test_nothing_gives_nothing() -> None:
    assert list(ahead([])) == []


def test_a_failure_comes_up_where_its_item_would_have_come() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("two")

    items = ahead(failing(), depth=3)
    assert next(items) == 1
    with pytest.raises(ValueError, match="two"):
        next(items)


def test_the_next_item_is_made_while_this_one_is_used() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    stream = ahead(items())
    next(stream)
    assert made.wait(60)
    stream.close()


def test_whoever_stops_early_ends_the_thread() -> None:
    before = threading.active_count()
    stream = ahead(iter(range(1_000_000)), depth=4)
    next(stream)
    stream.close()
    assert threading.active_count() == before
