"""Counting work: which functions of ours some work calls, and how often; times say too little."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

_CHECKOUT = str(Path(__file__).resolve().parent.parent)


class Work:
    """Calls by module and function, of all threads that began meanwhile."""

    def __init__(self) -> None:
        self._by_code: Counter[CodeType] = Counter()

    @property
    def total(self) -> int:
        return sum(self.of_ours.values())

    @property
    def of_ours(self) -> Counter[str]:
        """Calls of functions in this checkout, as `module.function`."""
        found: Counter[str] = Counter()
        for code, count in list(self._by_code.items()):
            if code.co_filename.startswith(_CHECKOUT) and ".venv" not in code.co_filename:
                found[f"{Path(code.co_filename).stem}.{code.co_qualname}"] += count
        return found

    def of(self, name: str) -> int:
        """Calls of one function, in any library, by its qualified name."""
        by_code = list(self._by_code.items())
        return sum(times for code, times in by_code if code.co_qualname == name)

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._by_code[frame.f_code] += 1


@contextmanager
def counting() -> Iterator[Work]:
    """Count what happens within."""
    work = Work()
    before = sys.getprofile()
    threading.setprofile(work.note)
    sys.setprofile(work.note)
    try:
        yield work
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def counted(act: Callable[[], object]) -> Work:
    with counting() as work:
        act()
    return work
