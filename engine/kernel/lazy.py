"""Values that are derived once, when they are asked for."""

from collections.abc import Callable
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
