"""Records and values: an Avro record as a frozen dataclass and back, checked field by field.

The dataclass is the declaration: its field `num_writes` is the record's field `numWrites` (or what
another spelling makes of it), and its type hint says what may stand there. Null or nothing gives
the field's default where None is not allowed; unknown fields of a record are ignored, as newer
writers may add some. Bytes stand in a record as a text in base64, as JSON has none.

Codecs: one kind of instant content as the bytes of an Avro file holding one record.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from importlib import resources
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from lakewarden.engine.formats.avro.container import read_container, write_container
from lakewarden.engine.formats.avro.schema import written_schema
from lakewarden.engine.kernel.errors import CorruptTable, corrupt

Value = TypeVar("Value")

Int32 = Annotated[int, range(-(2**31), 2**31)]

# The key in a dataclass field's metadata for a record field with an irregular name.
IRREGULAR_NAME = "irregular_name"

_LONG = range(-(2**63), 2**63)
_ABSENT = object()
_Convert = Callable[[Any], object]
Spelling = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Step:
    """How one field of a record is read."""

    attribute: str
    name: str
    read: _Convert
    when_null: Callable[[], object]
    when_absent: Callable[[], object]


class _Mismatch(Exception):
    """Something in a record is not of the declared type; says where and what."""


def camel_case(name: str) -> str:
    """How Java spells a field."""
    head, *tail = name.split("_")
    return head + "".join(map(str.title, tail))


def value_of(
    kind: type[Value], record: object, path: str, spelling: Spelling = camel_case
) -> Value:
    """The value that a record stands for; `CorruptTable` where a field is of another type."""
    shape: object = kind
    try:
        value = _reader(shape, spelling)(record)
    except _Mismatch as mismatch:
        raise corrupt(path, None, f"Its content does not fit: {mismatch}.") from None
    assert isinstance(value, kind)
    return value


def record_of(value: object, spelling: Spelling = camel_case) -> dict[str, object]:
    """The record that stands for a value."""
    shape: object = type(value)
    return _record_writer(shape, spelling)(value)


@cache
def _record_writer(kind: object, spelling: Spelling) -> Callable[[object], dict[str, object]]:
    assert isinstance(kind, type)
    hints = get_type_hints(kind)
    plan = tuple(
        (_name(field, spelling), attrgetter(field.name), _writer(hints[field.name], spelling))
        for field in fields(kind)
    )

    def write(value: object) -> dict[str, object]:
        record = {}
        for name, attribute, plain in plan:
            item = attribute(value)
            record[name] = item if plain is None or item is None else plain(item)
        return record

    return write


def _writer(hint: object, spelling: Spelling) -> _Convert | None:
    """How values of a hint become plain; None where they already are."""
    origin, arguments = get_origin(hint), get_args(hint)
    if NoneType in arguments:
        return _writer(next(part for part in arguments if part is not NoneType), spelling)
    if origin is tuple:
        write = _writer(arguments[0], spelling)
        return list if write is None else partial(_written_list, write)
    if origin is Mapping:
        write = _writer(arguments[1], spelling)
        return dict if write is None else partial(_written_map, write)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record_writer(hint, spelling)
    if hint is bytes:
        return _written_base64
    return _enum_value if isinstance(hint, type) and issubclass(hint, Enum) else None


def _written_list(write: _Convert, items: Sequence[object]) -> object:
    return [write(item) for item in items]


def _written_map(write: _Convert, items: Mapping[str, object]) -> object:
    return {key: write(item) for key, item in items.items()}


def _written_base64(content: bytes) -> object:
    return b64encode(content).decode()


def _enum_value(item: Enum) -> object:
    return item.value


def _name(field: Field[object], spelling: Spelling) -> str:
    return str(field.metadata.get(IRREGULAR_NAME) or spelling(field.name))


@cache
def _record_reader(kind: type, spelling: Spelling) -> _Convert:
    hints = get_type_hints(kind, include_extras=True)
    steps = tuple(_step(field, hints[field.name], spelling) for field in fields(kind))

    def read(record: object) -> object:
        if not isinstance(record, dict):
            raise _mismatch("a record", record)
        values = {}
        for step in steps:
            item = record.get(step.name, _ABSENT)
            try:
                if item is None:
                    values[step.attribute] = step.when_null()
                elif item is _ABSENT:
                    values[step.attribute] = step.when_absent()
                else:
                    values[step.attribute] = step.read(item)
            except _Mismatch as mismatch:
                raise _Mismatch(f"{step.name}: {mismatch}") from None
        return kind(**values)

    return read


def _step(field: Field[object], hint: object, spelling: Spelling) -> _Step:
    allows_none = NoneType in get_args(hint)
    if allows_none:
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    default = _default(field) or (_none if allows_none else _refused)
    return _Step(
        attribute=field.name,
        name=_name(field, spelling),
        read=_reader(hint, spelling),
        when_null=_none if allows_none else default,
        when_absent=default,
    )


def _default(field: Field[object]) -> Callable[[], object] | None:
    if field.default_factory is not MISSING:
        return field.default_factory
    if field.default is not MISSING:
        default = field.default
        return lambda: default
    return None


def _none() -> None:
    return None


def _refused() -> object:
    raise _Mismatch("it is missing")


@cache
def _reader(hint: object, spelling: Spelling) -> _Convert:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _integer_reader(arguments[1])
    if origin is tuple:
        return _sequence_reader(_reader(arguments[0], spelling))
    if origin is Mapping:
        return _mapping_reader(_reader(arguments[1], spelling))
    assert isinstance(hint, type)
    if is_dataclass(hint):
        return _record_reader(hint, spelling)
    return _enum_reader(hint) if issubclass(hint, Enum) else _SCALARS[hint]


def _read_text(item: object) -> object:
    if type(item) is not str:
        raise _mismatch("a text", item)
    return item


def _read_base64(item: object) -> object:
    try:
        return b64decode(item if isinstance(item, str) else "?", validate=True)
    except ValueError:
        raise _mismatch("a text in base64", item) from None


def _read_flag(item: object) -> object:
    if type(item) is not bool:
        raise _mismatch("true or false", item)
    return item


def _read_number(item: object) -> object:
    # JSON writes a whole double without its point.
    if type(item) is int and item in _LONG:
        return float(item)
    if type(item) is not float:
        raise _mismatch("a number", item)
    return item


def _integer_reader(allowed: range) -> _Convert:
    def read(item: object) -> object:
        if type(item) is not int or item not in allowed:
            raise _mismatch(f"a whole number of {allowed.stop.bit_length()} bits", item)
        return item

    return read


_SCALARS: dict[type, _Convert] = {
    str: _read_text,
    bytes: _read_base64,
    bool: _read_flag,
    float: _read_number,
    int: _integer_reader(_LONG),
}


def _enum_reader(kind: type[Enum]) -> _Convert:
    members = {member.value: member for member in kind}

    def read(item: object) -> object:
        if not isinstance(item, str) or item not in members:
            raise _mismatch(f"one of {', '.join(map(str, members))}", item)
        return members[item]

    return read


def _sequence_reader(read_item: _Convert) -> _Convert:
    def read(items: object) -> object:
        if not isinstance(items, list):
            raise _mismatch("a list", items)
        return tuple(map(read_item, items))

    return read


def _mapping_reader(read_item: _Convert) -> _Convert:
    def read(items: object) -> object:
        if not isinstance(items, dict):
            raise _mismatch("a map", items)
        # Only JSON can have nulls here; the Avro form has no place for them.
        return {key: read_item(item) for key, item in items.items() if item is not None}

    return read


def _mismatch(expected: str, found: object) -> _Mismatch:
    is_short = isinstance(found, str | int | float)
    shown = f"{found!r:.40}" if is_short else type(found).__name__
    return _Mismatch(f"{expected} is expected, not {shown}")


TORN_PLAN = "torn_plan"
# Smaller records are mostly numbers, and names that occur once.
_DEFLATED_BYTES_MIN = 1 << 10


@dataclass(frozen=True, slots=True)
class InstantCodec(Generic[Value]):
    """Reads and writes one kind of content; the schema is the one Java puts in its files.

    Whatever a content names is held against the border of the table when it is read.
    """

    kind: type[Value]
    schema: str
    # Refuses places outside of the table; the other argument is the file that names them.
    check_places: Callable[[Value, str], None]

    def decode(self, payload: bytes, path: str) -> Value:
        """The value in a file; `CorruptTable` when the bytes are no such record."""
        return self.checked(value_of(self.kind, read_container(payload, path), path), path)

    def checked(self, value: Value, path: str) -> Value:
        """The value, whose places are those of a table."""
        self.check_places(value, path)
        return value

    def decode_plan(self, payload: bytes, path: str) -> Value:
        """The plan in a file; `CorruptTable` with code `torn_plan` for an empty or torn file."""
        if not payload:
            raise torn_plan(path, "The file is empty.")
        try:
            plan = value_of(self.kind, read_container(payload, path), path)
        except CorruptTable as error:
            raise torn_plan(path, error.why) from error
        # A whole plan that leads out of the table is no torn one, which would just be passed over.
        return self.checked(plan, path)

    def encode(self, value: Value) -> bytes:
        """The file: Java's but for its size, as records are packed and schemas say no more than it.

        A reader brings its own schema, and takes what a record has by that of the file.
        """
        schema = written_schema(self.schema)
        return write_container(record_of(value), schema, deflated_from=_DEFLATED_BYTES_MIN)


def schema_text(name: str) -> str:
    """The text of the schema file `<name>.avsc` that lies beside the modules."""
    return resources.files(__package__).joinpath(f"{name}.avsc").read_text("utf-8").strip()


def torn_plan(path: str, reason: str) -> CorruptTable:
    return CorruptTable(
        TORN_PLAN,
        what=f"{path} does not hold a complete plan.",
        why=reason,
        now="Schedule a new plan. This one was never published: its writer died first.",
        path=path,
    )
