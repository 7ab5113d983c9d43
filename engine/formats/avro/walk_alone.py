"""Walking over the values of one record, where steps over many records gain nothing."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeAlias

from lakewarden.engine.formats.avro.types import (
    ArrayType,
    AvroType,
    DecimalType,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
    entry_type,
    exact_size,
    minimum_size,
)
from lakewarden.engine.kernel.errors import CorruptTable

# Takes a position and the end of the record, gives the position behind the value.
Skip: TypeAlias = Callable[[int, int], int]
_Step: TypeAlias = Callable[["Walker", int, int], int]
_REMEMBERED_TYPES = 1024


class Walker:
    """Steps over values in some bytes; `failure` makes the error for a position and a reason.

    Where values become objects one by one, the items of all arrays and maps can be bounded.
    """

    def __init__(
        self,
        octets: memoryview,
        failure: Callable[[int, str], CorruptTable],
        *,
        items_max: int | None = None,
    ) -> None:
        self._octets = octets
        self.failure = failure
        self._items_left = items_max

    def skip_of(self, type_: AvroType) -> Skip:
        """The step over one value of a type."""
        return partial(_step_of(type_), self)

    def number(self, position: int, end: int) -> tuple[int, int]:
        """A zigzag varint, and the position behind it."""
        value = shift = 0
        for at in range(position, min(position + 10, end)):
            octet = self._octets[at]
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1), at + 1
            shift += 7
        raise self.failure(position, "A number is cut off, or has more than 64 bits.")

    def length(self, position: int, end: int) -> tuple[int, int]:
        """A length that fits in the record, and the position behind it."""
        size, position = self.number(position, end)
        if not 0 <= size <= end - position:
            raise self.failure(position, "A length does not fit in its record.")
        return size, position

    def block(self, position: int, end: int, minimum: int) -> tuple[int, int | None, int]:
        """A block's number of items, where it says it ends (if so), and where its items begin."""
        items, inside = self.number(position, end)
        stop = None
        if items < 0:
            items = -items
            size, inside = self.length(inside, end)
            stop = inside + size
        if items > (end - inside) // minimum:
            raise self.failure(position, "An array has more items than bytes.")
        if self._items_left is not None:
            self._items_left -= items
            if self._items_left < 0:
                raise self.failure(position, "It has more items than a file of its size may.")
        return items, stop, inside

    def check_stop(self, position: int, stop: int | None) -> None:
        """Whether a block's items end where the block says it ends."""
        if stop is not None and stop != position:
            raise self.failure(position, "A block is not as long as it says.")


@lru_cache(maxsize=_REMEMBERED_TYPES)
def _step_of(type_: AvroType) -> _Step:
    """The step of any walker over one value of a type; files of one kind have the same type."""
    size = exact_size(type_)
    if size is not None:
        return _exactly(size)
    match type_:
        case RecordType(fields=fields):
            return _in_turn([_step_of(field.type) for field in fields])
        case ArrayType(items=items):
            return _items(items)
        case MapType():
            return _items(entry_type(type_))
        case UnionType(branches=branches):
            return _union([_step_of(branch) for branch in branches])
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING) | DecimalType():
            return _sized
        case _:
            return _number


def _number(walker: Walker, position: int, end: int) -> int:
    return walker.number(position, end)[1]


def _sized(walker: Walker, position: int, end: int) -> int:
    size, position = walker.length(position, end)
    return position + size


def _exactly(size: int) -> _Step:
    def step(walker: Walker, position: int, end: int) -> int:
        if size > end - position:
            raise walker.failure(position, "A value runs over the end of its record.")
        return position + size

    return step


def _union(branches: list[_Step]) -> _Step:
    def step(walker: Walker, position: int, end: int) -> int:
        chosen, inside = walker.number(position, end)
        if not 0 <= chosen < len(branches):
            raise walker.failure(position, "A union has no such branch.")
        return branches[chosen](walker, inside, end)

    return step


def _items(items: AvroType) -> _Step:
    over_item, minimum, exact = _step_of(items), minimum_size(items), exact_size(items)

    def step(walker: Walker, position: int, end: int) -> int:
        while True:
            count, stop, position = walker.block(position, end, minimum)
            if count == 0:
                return position
            if exact is None:
                for _ in range(count):
                    position = over_item(walker, position, end)
            else:
                position += count * exact
            walker.check_stop(position, stop)

    return step


def _in_turn(steps: list[_Step]) -> _Step:
    def step(walker: Walker, position: int, end: int) -> int:
        for one in steps:
            position = one(walker, position, end)
        return position

    return step
