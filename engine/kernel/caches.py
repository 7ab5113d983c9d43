"""Caches: values derived once when asked for, and values kept within a bound of bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar, overload

ValueT = TypeVar("ValueT")


class lazy(Generic[ValueT]):  # noqa: N801 - a decorator is written small
    """Like `functools.cached_property`, without its lock.

    In Python 3.11 that lock is one for all instances of the class, and it is held while the value
    is computed: what reads a storage would have all other readers wait. Two threads may compute a
    value of the same instance here; they come to the same.
    """

    def __init__(self, compute: Callable[..., ValueT]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy[ValueT]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> ValueT: ...

    def __get__(self, instance: object | None, owner: type) -> "lazy[ValueT] | ValueT":
        if instance is None:
            return self
        value = self._compute(instance)
        # From now on the attribute is found before this descriptor is.
        instance.__dict__[self._name] = value
        return value


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
