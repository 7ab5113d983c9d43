"""Walking over values without reading them: where they end, and where the items of arrays begin.

Walking over the values of one record, where steps over many records gain nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

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
from lakewarden.engine.formats.avro.window import Cursor, Integers, Mask, RecordWindow
from lakewarden.engine.kernel.caches import lazy
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


# With fewer rows than this, a step for all of them costs more than walking each one alone.
ENOUGH_ROWS = 48
# Items of one size need no steps, only sums: even one row gains, unless its blocks are many.
FEW_BLOCKS = 4
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Items:
    """How many items each row has, a cursor for all items, row after row, and one behind them."""

    counts: Integers
    cursor: Cursor
    after: Cursor


def skip(window: RecordWindow, type_: AvroType, cursor: Cursor) -> Cursor:
    """The cursor behind one value of the type in every row."""
    size = exact_size(type_)
    if size is not None:
        return window.moved(cursor, cursor.positions + size)
    match type_:
        case RecordType(fields=fields):
            for field in fields:
                cursor = skip(window, field.type, cursor)
            return cursor
        case ArrayType(items=items):
            return find_items(window, items, cursor).after
        case MapType():
            return find_items(window, entry_type(type_), cursor).after
        case UnionType():
            return _skip_union(window, type_, cursor)
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING) | DecimalType():
            sizes, inside = window.lengths(cursor)
            return Cursor(inside.positions + sizes, inside.ends)
        case _:
            return window.numbers(cursor)[1]


def branches(window: RecordWindow, union: UnionType, cursor: Cursor) -> tuple[Integers, Cursor]:
    """The number of the branch each row has, and the cursor behind it."""
    chosen, inside = window.numbers(cursor)
    wrong = (chosen < 0) | (chosen >= len(union.branches))
    window.refuse(wrong, cursor, "A union has no such branch.")
    return chosen, inside


def present(window: RecordWindow, union: UnionType, cursor: Cursor) -> tuple[Mask, Cursor]:
    """Which rows of an optional type hold a value, and the cursor behind the branch."""
    first = window.octets[cursor.positions]
    if (first & 0xFD).any():
        # A branch number may be written longer than needed; if it is wrong, this refuses it.
        chosen, inside = branches(window, union, cursor)
        return chosen != union.null_index, inside
    value = 2 if union.null_index == 0 else 0
    return first == value, window.moved(cursor, cursor.positions + 1)


def moved_rows(cursor: Cursor, rows: Mask | Integers, inner: Cursor) -> Cursor:
    """The cursor after a step that only some rows took."""
    positions = cursor.positions.copy()
    positions[rows] = inner.positions
    return Cursor(positions, cursor.ends)


def find_items(window: RecordWindow, items: AvroType, cursor: Cursor) -> Items:
    """The items of arrays (or entries of maps), one array in every row."""
    walk = _Walk(window, items, cursor)
    rows = np.arange(len(cursor))
    blocks = 0
    while walk.pays(rows, blocks):
        rows = walk.block(rows)
        blocks += 1
    for row in rows.tolist():
        walk.alone(row)
    return walk.items()


def _skip_union(window: RecordWindow, union: UnionType, cursor: Cursor) -> Cursor:
    chosen, inside = branches(window, union, cursor)
    for index, branch in enumerate(union.branches):
        rows = np.flatnonzero(chosen == index)
        if rows.size == len(cursor):
            return skip(window, branch, inside)
        if rows.size:
            inside = moved_rows(inside, rows, skip(window, branch, inside.only(rows)))
    return inside


class _Walk:
    """Collects where items begin, block by block."""

    def __init__(self, window: RecordWindow, items: AvroType, cursor: Cursor) -> None:
        self._window = window
        self._type = items
        self._size = exact_size(items)
        self._minimum = minimum_size(items)
        self._walker = Walker(window.octets.data, window.corrupt)
        self._ends = cursor.ends
        self._positions = cursor.positions.copy()
        self._counts = np.zeros(len(cursor), np.int64)
        # What was found so far: the row of each item, and where it begins.
        self._rows: list[Integers] = [_NONE]
        self._starts: list[Integers] = [_NONE]

    def pays(self, rows: Integers, blocks: int) -> bool:
        """Whether to take another block of all these rows together."""
        few_blocks = self._size is not None and blocks < FEW_BLOCKS
        return rows.size >= ENOUGH_ROWS or (rows.size > 0 and few_blocks)

    def block(self, rows: Integers) -> Integers:
        """Walk over the next block of each of the rows; gives the rows that may have one more."""
        at = Cursor(self._positions[rows], self._ends[rows])
        counts, stops, inside = self._headers(at)
        self._positions[rows] = inside.positions
        going = counts > 0
        if not going.all():
            rows, counts, stops, inside = (
                rows[going],
                counts[going],
                stops[going],
                inside.only(going),
            )
        starts, after = self._steps(counts, inside)
        wrong = (stops >= 0) & (stops != after.positions)
        self._window.refuse(wrong, after, "A block is not as long as it says.")
        self._positions[rows] = after.positions
        self._found(rows, counts, starts)
        return rows

    def alone(self, row: int) -> None:
        """Walk over all remaining blocks of one row."""
        position, end = int(self._positions[row]), int(self._ends[row])
        while True:
            count, stop, position = self._walker.block(position, end, self._minimum)
            if count == 0:
                break
            starts, position = self._steps_alone(position, end, count)
            self._walker.check_stop(position, stop)
            self._found(np.array([row]), np.array([count]), np.array(starts))
        self._positions[row] = position

    def items(self) -> Items:
        """What was found, sorted by row."""
        rows, starts = np.concatenate(self._rows), np.concatenate(self._starts)
        if len(self._rows) > 2:
            order = np.argsort(rows, kind="stable")
            rows, starts = rows[order], starts[order]
        after = Cursor(self._positions, self._ends)
        return Items(self._counts, Cursor(starts, self._ends[rows]), after)

    def _headers(self, at: Cursor) -> tuple[Integers, Integers, Cursor]:
        """How many items each block has, where it says it ends (-1: it does not), what follows."""
        counts, inside = self._window.numbers(at)
        stops = np.full(counts.size, -1)
        sized = counts < 0
        if sized.any():
            sizes, inside = self._window.lengths(inside, sized)
            stops = np.where(sized, inside.positions + sizes, -1)
            counts = np.abs(counts)
        room = inside.ends - inside.positions
        # The smallest number there is stays negative when its sign is dropped.
        wrong = (counts > room // self._minimum) | (counts < 0)
        self._window.refuse(wrong, at, "An array has more items than bytes.")
        return counts, stops, inside

    def _steps(self, counts: Integers, inside: Cursor) -> tuple[Integers, Cursor]:
        """Where the items of one block of each row begin, row after row, and what follows."""
        firsts = np.cumsum(counts) - counts
        if self._size is not None:
            numbers = np.arange(counts.sum()) - np.repeat(firsts, counts)
            starts = np.repeat(inside.positions, counts) + self._size * numbers
            return starts, self._window.moved(inside, inside.positions + self._size * counts)
        starts = np.empty(counts.sum(), np.int64)
        positions = inside.positions.copy()
        rows, here, number = np.arange(counts.size), inside, 0
        while rows.size >= ENOUGH_ROWS:
            starts[firsts[rows] + number] = here.positions
            here = skip(self._window, self._type, here)
            number += 1
            going = counts[rows] > number
            if not going.all():
                positions[rows[~going]] = here.positions[~going]
                rows, here = rows[going], here.only(going)
        for row, position, end in zip(
            rows.tolist(), here.positions.tolist(), here.ends.tolist(), strict=True
        ):
            first, last = firsts[row] + number, firsts[row] + counts[row]
            starts[first:last], positions[row] = self._steps_alone(position, end, last - first)
        return starts, Cursor(positions, inside.ends)

    def _steps_alone(self, position: int, end: int, count: int) -> tuple[Sequence[int], int]:
        """Where each of so many items of one row begins, and what follows."""
        if self._size is not None:
            after = position + count * self._size
            return range(position, after, self._size), after
        starts = []
        for _ in range(count):
            starts.append(position)
            position = self._skip_alone(position, end)
        return starts, position

    @lazy
    def _skip_alone(self) -> Skip:
        return self._walker.skip_of(self._type)

    def _found(self, rows: Integers, counts: Integers, starts: Integers) -> None:
        if not starts.size:
            return
        self._counts[rows] += counts
        self._rows.append(np.repeat(rows, counts))
        self._starts.append(starts)
