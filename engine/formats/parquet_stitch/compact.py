"""Thrift's compact protocol, in which Parquet writes its footers and the headers of its pages.

Fields are kept by number and kind whatever they mean, so that nothing a writer has said is lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

# Parquet nests seven deep; a byte can't make us nest deeper than this.
DEPTH_MAX = 32
_VARINT_BYTES_MAX = 10
_BITS, _MASK = 64, (1 << 64) - 1
_LONG_COUNT = 15


class ThriftKind(IntEnum):
    """The kinds of fields; a boolean field has its value in its kind."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12


_KINDS = {kind.value: kind for kind in ThriftKind}
_BOOLEANS = (ThriftKind.TRUE, ThriftKind.FALSE)
_NUMBERS = (ThriftKind.I16, ThriftKind.I32, ThriftKind.I64)
_DOUBLE_BYTES = 8


class MalformedThrift(Exception):
    """Bytes that are no such document; `offset` is where in them."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True, slots=True)
class ThriftItems:
    """A list, or a set, of values of one kind."""

    kind: ThriftKind
    values: tuple["Value", ...] = ()
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class ThriftField:
    """A value and how it is written."""

    kind: ThriftKind
    value: "Value"


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by their numbers."""

    fields: Mapping[int, ThriftField] = field(default_factory=dict)

    def number(self, place: int) -> int | None:
        """A whole number, or None where there is no such field."""
        found = self.fields.get(place)
        if found is None:
            return None
        if not isinstance(found.value, int) or found.kind in _BOOLEANS:
            raise MalformedThrift(f"Field {place} is no number.")
        return found.value

    def required(self, place: int) -> int:
        """A whole number that must be there, and not below zero."""
        value = self.number(place)
        if value is None or value < 0:
            raise MalformedThrift(f"Field {place} should be a number from 0 on, and is {value}.")
        return value

    def octets(self, place: int) -> bytes | None:
        """Bytes, or None where there is no such field."""
        found = self.fields.get(place)
        if found is not None and not isinstance(found.value, bytes):
            raise MalformedThrift(f"Field {place} is no text.")
        return None if found is None else bytes(found.value)  # type: ignore[arg-type]

    def struct(self, place: int) -> "Struct | None":
        """A structure, or None where there is no such field."""
        found = self.fields.get(place)
        if found is None:
            return None
        if not isinstance(found.value, Struct):
            raise MalformedThrift(f"Field {place} is no structure.")
        return found.value

    def structs(self, place: int) -> tuple["Struct", ...]:
        """A list of structures; empty where there is no such field."""
        found = tuple(one for one in self._items(place) if isinstance(one, Struct))
        if len(found) != len(self._items(place)):
            raise MalformedThrift(f"Field {place} is no list of structures.")
        return found

    def texts(self, place: int) -> tuple[bytes, ...]:
        """A list of texts; empty where there is no such field."""
        found = tuple(one for one in self._items(place) if isinstance(one, bytes))
        if len(found) != len(self._items(place)):
            raise MalformedThrift(f"Field {place} is no list of texts.")
        return found

    def changed(self, fields: Mapping[int, ThriftField | None]) -> "Struct":
        """The same with some fields set, and without those that are None."""
        merged = {**self.fields, **fields}
        return Struct({place: one for place, one in merged.items() if one is not None})

    def _items(self, place: int) -> tuple["Value", ...]:
        found = self.fields.get(place)
        if found is None:
            return ()
        if not isinstance(found.value, ThriftItems):
            raise MalformedThrift(f"Field {place} is no list.")
        return found.value.values


Value: TypeAlias = bool | int | bytes | ThriftItems | Struct


def i16(value: int) -> ThriftField:
    return ThriftField(ThriftKind.I16, value)


def i32(value: int) -> ThriftField:
    return ThriftField(ThriftKind.I32, value)


def i64(value: int) -> ThriftField:
    return ThriftField(ThriftKind.I64, value)


def flag(*, value: bool) -> ThriftField:
    return ThriftField(ThriftKind.TRUE if value else ThriftKind.FALSE, value)


def octets(value: bytes) -> ThriftField:
    return ThriftField(ThriftKind.BINARY, value)


def structure(value: Struct) -> ThriftField:
    return ThriftField(ThriftKind.STRUCT, value)


def items(kind: ThriftKind, values: Iterable[Value]) -> ThriftField:
    return ThriftField(ThriftKind.LIST, ThriftItems(kind, tuple(values)))


def read_struct(content: bytes) -> Struct:
    """The structure at the beginning of some bytes; raises `Malformed`."""
    reader = _Reader(content)
    try:
        return reader.struct(0)
    except IndexError:
        raise MalformedThrift("It ends too early.", len(content)) from None


def written(struct: Struct) -> bytes:
    """A structure as bytes."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


def varint(value: int) -> bytes:
    """A number from 0 on, in as few bytes as it takes."""
    out = bytearray()
    _write_varint(out, value)
    return bytes(out)


class _Reader:
    """Reads on from where it is; an IndexError says that the bytes are at an end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self, depth: int) -> Struct:
        if depth > DEPTH_MAX:
            raise MalformedThrift(f"It nests deeper than {DEPTH_MAX}.", self._at)
        fields: dict[int, ThriftField] = {}
        place = 0
        while (head := self._octet()) != 0:
            step = head >> 4
            place = place + step if step else self._signed()
            kind = self._kind(head & 0x0F)
            if place in fields:
                raise MalformedThrift(f"Field {place} comes twice.", self._at)
            value = kind is ThriftKind.TRUE if kind in _BOOLEANS else self._value(kind, depth)
            fields[place] = ThriftField(kind, value)
        return Struct(fields)

    def _value(self, kind: ThriftKind, depth: int) -> Value:
        if kind in _NUMBERS:
            return self._signed()
        if kind is ThriftKind.BINARY:
            return self._octets(self._unsigned())
        if kind is ThriftKind.STRUCT:
            return self.struct(depth + 1)
        if kind in (ThriftKind.LIST, ThriftKind.SET):
            return self._items(kind, depth + 1)
        if kind is ThriftKind.DOUBLE:
            return self._octets(_DOUBLE_BYTES)
        return self._octet()

    def _items(self, outer: ThriftKind, depth: int) -> ThriftItems:
        head = self._octet()
        kind, count = self._kind(head & 0x0F), head >> 4
        if count == _LONG_COUNT:
            count = self._unsigned()
        # Every value takes a byte at least, so that a count can't ask for more than there is.
        if count > len(self._content) - self._at or depth > DEPTH_MAX:
            raise MalformedThrift(f"A list of {count} values does not fit.", self._at)
        if kind in _BOOLEANS:
            values: tuple[Value, ...] = tuple(
                self._octet() == ThriftKind.TRUE for _ in range(count)
            )
        else:
            values = tuple(self._value(kind, depth) for _ in range(count))
        return ThriftItems(kind, values, outer is ThriftKind.SET)

    def _kind(self, number: int) -> ThriftKind:
        found = _KINDS.get(number)
        if found is None:
            raise MalformedThrift(f"There is no kind {number} in Parquet.", self._at)
        return found

    def _octet(self) -> int:
        octet = self._content[self._at]
        self._at += 1
        return octet

    def _octets(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._content):
            raise MalformedThrift(f"{count} bytes are announced, and fewer are left.", self._at)
        found = self._content[self._at : end]
        self._at = end
        return found

    def _unsigned(self) -> int:
        first = self._content[self._at]
        if first < 0x80:
            # Most numbers are small.
            self._at += 1
            return first
        value = shift = 0
        for _ in range(_VARINT_BYTES_MAX):
            octet = self._octet()
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value & _MASK
            shift += 7
        raise MalformedThrift("A number does not end.", self._at)

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def _write_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for place in sorted(struct.fields):
        one = struct.fields[place]
        step = place - last
        if 0 < step < 16:
            out.append(step << 4 | one.kind)
        else:
            out.append(one.kind)
            _write_signed(out, place)
        last = place
        if one.kind not in _BOOLEANS:
            _write_value(out, one.kind, one.value)
    out.append(0)


def _write_value(out: bytearray, kind: ThriftKind, value: Value) -> None:
    match value:
        case bytes() if kind is ThriftKind.DOUBLE:
            out += value
        case bytes():
            _write_varint(out, len(value))
            out += value
        case Struct():
            _write_struct(out, value)
        case ThriftItems():
            _write_items(out, value)
        case int() if kind is ThriftKind.BYTE:
            out.append(value & 0xFF)
        case int():
            _write_signed(out, value)


def _write_items(out: bytearray, found: ThriftItems) -> None:
    count = len(found.values)
    out.append(min(count, _LONG_COUNT) << 4 | found.kind)
    if count >= _LONG_COUNT:
        _write_varint(out, count)
    for value in found.values:
        if found.kind in _BOOLEANS:
            out.append(ThriftKind.TRUE if value else ThriftKind.FALSE)
        else:
            _write_value(out, found.kind, value)


def _write_signed(out: bytearray, value: int) -> None:
    _write_varint(out, ((value << 1) ^ (value >> (_BITS - 1))) & _MASK)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
