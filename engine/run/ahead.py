"""Working ahead: the next items are made while the present one is being used."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from lakewarden.engine.run.executor import THREAD_NAME

ItemT = TypeVar("ItemT")
_END: Final = object()


def ahead(items: Iterable[ItemT], *, depth: int = 1) -> Iterator[ItemT]:
    """The same items in the same order, made by one thread of their own, so many in advance.

    A failure of that thread comes up where its item would have come.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD_NAME) as pool:

        def following() -> Future[object]:
            return pool.submit(next, source, _END)

        waiting = deque(following() for _ in range(depth))
        try:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(following())
                yield item  # type: ignore[misc]
        finally:
            for future in waiting:
                future.cancel()
