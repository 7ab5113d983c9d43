"""Walking over the values of one record, where steps over many records gain nothing."""

from collections.abc import Callable
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
        self._failure = failure
        self._items_left = items_max

    def skip_of(self, type_: AvroType) -> Skip:
        """The step over one value of a type."""
        size = exact_size(type_)
        if size is not None:
            return self._skip_exactly(size)
        match type_:
            case RecordType(fields=fields):
                return _in_turn([self.skip_of(field.type) for field in fields])
            case ArrayType(items=items):
                return self._skip_items(items)
            case MapType():
                return self._skip_items(entry_type(type_))
            case UnionType(branches=branches):
                return self._skip_union([self.skip_of(branch) for branch in branches])
            case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING) | DecimalType():
                return self._skip_sized
            case _:
                return lambda position, end: self.number(position, end)[1]

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
        raise self._failure(position, "A number is cut off, or has more than 64 bits.")

    def length(self, position: int, end: int) -> tuple[int, int]:
        """A length that fits in the record, and the position behind it."""
        size, position = self.number(position, end)
        if not 0 <= size <= end - position:
            raise self._failure(position, "A length does not fit in its record.")
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
            raise self._failure(position, "An array has more items than bytes.")
        if self._items_left is not None:
            self._items_left -= items
            if self._items_left < 0:
                raise self._failure(position, "It has more items than a file of its size may.")
        return items, stop, inside

    def check_stop(self, position: int, stop: int | None) -> None:
        """Whether a block's items end where the block says it ends."""
        if stop is not None and stop != position:
            raise self._failure(position, "A block is not as long as it says.")

    def _skip_exactly(self, size: int) -> Skip:
        def skip(position: int, end: int) -> int:
            if size > end - position:
                raise self._failure(position, "A value runs over the end of its record.")
            return position + size

        return skip

    def _skip_sized(self, position: int, end: int) -> int:
        size, position = self.length(position, end)
        return position + size

    def _skip_union(self, branches: list[Skip]) -> Skip:
        def skip(position: int, end: int) -> int:
            chosen, inside = self.number(position, end)
            if not 0 <= chosen < len(branches):
                raise self._failure(position, "A union has no such branch.")
            return branches[chosen](inside, end)

        return skip

    def _skip_items(self, items: AvroType) -> Skip:
        skip_item, minimum, exact = self.skip_of(items), minimum_size(items), exact_size(items)

        def skip(position: int, end: int) -> int:
            while True:
                count, stop, position = self.block(position, end, minimum)
                if count == 0:
                    return position
                if exact is None:
                    for _ in range(count):
                        position = skip_item(position, end)
                else:
                    position += count * exact
                self.check_stop(position, stop)

        return skip


def _in_turn(skips: list[Skip]) -> Skip:
    def skip(position: int, end: int) -> int:
        for one in skips:
            position = one(position, end)
        return position

    return skip
