"""What is done while the table's lock is held, counted: storage calls, bytes read, data files read.

Counts are the same on any machine under any load, so that tests can say what a hold costs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Self, TypeVar

import pyarrow as pa

from lakewarden.engine.storage.paths import joined
from lakewarden.engine.storage.port import Storage, Won
from lakewarden.engine.testing.faults import FaultyStorage

T = TypeVar("T")
LOCK = ".hoodie/lock"
_READS = ("read", "read_if_present", "read_versioned")


@dataclass(slots=True)
class Hold:
    """What one process has done in one hold of the lock."""

    calls: int = 0
    read_bytes: int = 0
    # The files outside the table's own folder that were opened or read.
    data_files: list[str] = field(default_factory=list)
    puts: list[str] = field(default_factory=list)

    def puts_below(self, folder: str) -> int:
        """How many files were put into a folder of this name."""
        return sum(f"/{folder}/" in path for path in self.puts)


class HoldWatch(FaultyStorage):
    """Counts what is done in each hold of the lock that is taken through this storage.

    The lock has to be a file of the table.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._watched = _Watched()

    @property
    def holds(self) -> list[Hold]:
        """The holds that have ended, in their order."""
        return self._watched.ended

    def below(self, folder: str) -> Self:
        seen = type(self).__new__(type(self))
        seen.__dict__ |= super().below(folder).__dict__
        seen._watched = self._watched
        return seen

    def _made(self, operation: str, path: str, effect: Callable[[], T], **more: Any) -> T:
        full = joined(self._folder, path)
        if operation == "delete" and full == LOCK:
            self._watched.end()
        found = super()._made(operation, path, effect, **more)
        if operation == "create_exclusive" and full == LOCK and isinstance(found, Won):
            self._watched.begin()
            return found
        return self._watched.note(operation, full, found)


@dataclass(slots=True)
class _Watched:
    hold: Hold | None = None
    ended: list[Hold] = field(default_factory=list)

    def begin(self) -> None:
        self.hold = Hold()

    def end(self) -> None:
        if self.hold is not None:
            self.ended.append(self.hold)
        self.hold = None

    def note(self, operation: str, path: str, found: T) -> T:
        hold = self.hold
        if hold is None:
            return found
        hold.calls += 1
        if operation == "put":
            hold.puts.append(path)
        if operation in (*_READS, "open") and not path.startswith(".hoodie/"):
            hold.data_files.append(path)
        if operation == "open":
            return pa.PythonFile(_Counted(found, hold), mode="r")  # type: ignore[return-value]
        content = getattr(found, "content", found)
        if operation in _READS and isinstance(content, bytes):
            hold.read_bytes += len(content)
        return found


class _Counted(BytesIO):
    """An open file of which each read counts for a hold."""

    def __init__(self, file: pa.NativeFile, hold: Hold) -> None:
        super().__init__(file.read())
        self._hold = hold

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self._hold.read_bytes += len(found)
        return found
