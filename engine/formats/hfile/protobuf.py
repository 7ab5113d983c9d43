"""As much of protobuf as trailers and file infos need: varints and length-delimited fields."""

from collections.abc import Iterator

_VARINT, _DELIMITED = 0, 2
_FIXED_WIDTHS = {1: 8, 5: 4}
_UINT64 = (1 << 64) - 1
_VARINT_BYTES_MAX = 10


class MalformedProtobuf(ValueError):
    """The bytes are no message; the reader that knows the file turns this into `CorruptTable`."""


def read_varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """An unsigned varint and the position behind it."""
    value = 0
    for index, octet in enumerate(content[at : min(at + _VARINT_BYTES_MAX, end)]):
        value |= (octet & 0x7F) << (7 * index)
        if octet < 0x80:
            return value & _UINT64, at + index + 1
    raise MalformedProtobuf("A varint is cut off or too long.")


def read_delimited(content: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Bytes that follow their length, and the position behind them."""
    length, at = read_varint(content, at, end)
    if length > end - at:
        raise MalformedProtobuf("A field is longer than what holds it.")
    return content[at : at + length], at + length


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: number and value."""
    at, end = 0, len(message)
    value: int | bytes
    while at < end:
        tag, at = read_varint(message, at, end)
        kind = tag & 7
        if kind == _VARINT:
            value, at = read_varint(message, at, end)
        elif kind == _DELIMITED:
            value, at = read_delimited(message, at, end)
        elif kind in _FIXED_WIDTHS:
            value, at = _read_fixed(message, at, _FIXED_WIDTHS[kind])
        else:
            raise MalformedProtobuf(f"There is no wire type {kind}.")
        yield tag >> 3, value


def _read_fixed(message: bytes, at: int, width: int) -> tuple[int, int]:
    if width > len(message) - at:
        raise MalformedProtobuf("A field is longer than what holds it.")
    return int.from_bytes(message[at : at + width], "little"), at + width


def varint(value: int) -> bytes:
    """A number as varint; a negative one as the 64 bits of its two's complement."""
    value &= _UINT64
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def delimited(content: bytes) -> bytes:
    """Bytes behind their length."""
    return varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | _DELIMITED) + delimited(value)
