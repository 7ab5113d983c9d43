"""Values kept for the whole process, those asked for last, within a bound of bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class ByteBounded(Generic[ValueT]):
    """Keeps values by what identifies them; many threads may ask at once."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[Hashable, tuple[ValueT, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """What is kept now."""
        return self._bytes

    def get(self, identity: Hashable) -> ValueT | None:
        """The value, if it is still here."""
        with self._lock:
            found = self._kept.get(identity)
            if found is None:
                return None
            self._kept.move_to_end(identity)
            return found[0]

    def keep(self, identity: Hashable, value: ValueT, size_bytes: int) -> None:
        """Keep a value, unless it is larger than the bound; forget others as far as need be."""
        if size_bytes > self._bytes_max:
            return
        with self._lock:
            _, before = self._kept.pop(identity, (None, 0))
            self._bytes += size_bytes - before
            self._kept[identity] = value, size_bytes
            while self._bytes > self._bytes_max:
                self._bytes -= self._kept.popitem(last=False)[1][1]
