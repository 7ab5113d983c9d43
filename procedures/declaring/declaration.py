"""Declarations: what a procedure is called, takes and gives, as values.

A procedure is a class: its fields are the arguments, its `Row` the columns, `run` the work.

SQL types: what arguments and columns can be, and the Python types that stand for them.
"""

import inspect
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, TypeVar, dataclass_transform

from lakewarden.engine.kernel.errors import Defect
from lakewarden.procedures.declaring.caller import Caller


class SqlType(StrEnum):
    """A type as SQL spells it."""

    STRING = "STRING"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    # An instant with a zone: every client shows it in its own.
    TIMESTAMP = "TIMESTAMP"
    STRINGS = "ARRAY<STRING>"
    OPTIONS = "MAP<STRING,STRING>"


_BY_PYTHON_TYPE: Mapping[object, SqlType] = {
    str: SqlType.STRING,
    int: SqlType.BIGINT,
    float: SqlType.DOUBLE,
    bool: SqlType.BOOLEAN,
    datetime: SqlType.TIMESTAMP,
    tuple[str, ...]: SqlType.STRINGS,
    Mapping[str, str]: SqlType.OPTIONS,
}


def sql_type_of(hint: object) -> SqlType:
    """The type that a Python annotation stands for; `None` as an alternative says nothing."""
    found = _BY_PYTHON_TYPE.get(_without_none(hint))
    if found is None:
        raise Defect(
            "unknown_sql_type",
            what=f"{hint!r} has no SQL type.",
            why="Procedures declare arguments and columns by a few Python types.",
            now=f"Use one of {', '.join(map(str, _BY_PYTHON_TYPE))}.",
        )
    return found


def _without_none(hint: object) -> object:
    if not isinstance(hint, types.UnionType) and typing.get_origin(hint) is not typing.Union:
        return hint
    alternatives = [one for one in typing.get_args(hint) if one is not type(None)]
    return alternatives[0] if len(alternatives) == 1 else hint


@dataclass(frozen=True, slots=True)
class Also:
    """Other spellings of an argument, such as Hudi's own; case never matters."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True)
class Named:
    """The name of an argument or a column where Python can't spell it."""

    name: str


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Marks the argument that chooses among the rows by a condition on their columns."""


@dataclass(frozen=True, slots=True)
class RowLimit:
    """Marks the argument that says how many rows are given at most, after the filter.

    It says nothing where the caller has given all of some other arguments.
    """

    unless: tuple[str, ...] = ()


TableName = Annotated[str | None, "The table's name in the catalog; its path where there is none."]
TablePath = Annotated[str | None, "The table's path, instead of its name."]
OnlyInstant = Annotated[str | None, "Only what is about this instant."]
DryRun = Annotated[bool, "Change nothing; give the rows that it would give."]
Filter = Annotated[str, "A condition on the columns; only rows that meet it.", RowFilter()]
Limit = Annotated[int | None, "No more rows than these; all without a number.", RowLimit()]
Options = Annotated[
    Mapping[str, str] | None, "Settings for this call: 'key=value,key2=value2', or a MAP."
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument; the order of declaration is that of positions."""

    name: str
    type: SqlType
    is_required: bool
    default: object
    comment: str
    also: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.also)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the answer; `field` is the name of its value in a row."""

    name: str
    type: SqlType
    comment: str
    field: str


class Call(ABC):
    """One call of a procedure, with its arguments as fields."""

    declaration: ClassVar["Procedure"]
    # What a row is made of.
    Row: ClassVar[type]

    @abstractmethod
    def run(self, caller: Caller) -> Iterable[object]:
        """Do it, and give the rows."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """What everybody needs to know to offer a procedure."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    # Whether a call may change a table.
    is_mutating: bool
    call: type[Call] = field(repr=False)
    # By which an answer is cut down once it is there, if the procedure has such arguments.
    filter_parameter: str | None = None
    limit_parameter: str | None = None
    limit_unless: tuple[str, ...] = ()


Declared = TypeVar("Declared", bound=Call)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def procedure(
    name: str, *, is_mutating: bool = False
) -> Callable[[type[Declared]], type[Declared]]:
    """Declare a class as a procedure."""

    def declare(call: type[Declared]) -> type[Declared]:
        made = dataclass(frozen=True, kw_only=True)(call)
        made.declaration = _declaration(name, made, is_mutating=is_mutating)
        return made

    return declare


def _declaration(name: str, call: type[Call], *, is_mutating: bool) -> Procedure:
    hints = typing.get_type_hints(call, include_extras=True)
    return Procedure(
        name=name,
        summary=inspect.cleandoc(call.__doc__ or ""),
        parameters=tuple(
            _parameter(one.name, hints[one.name], one.default) for one in _fields(call)
        ),
        columns=tuple(_columns(call.Row)),
        is_mutating=is_mutating,
        call=call,
        filter_parameter=_marked(call, hints, RowFilter),
        limit_parameter=_marked(call, hints, RowLimit),
        limit_unless=_unless(hints.values()),
    )


def _parameter(name: str, hint: object, default: object) -> Parameter:
    plain, notes = _parts(hint)
    return Parameter(
        name=_name(name, notes),
        type=sql_type_of(plain),
        is_required=default is MISSING,
        default=None if default is MISSING else default,
        comment=_comment(notes),
        also=tuple(other for note in notes if isinstance(note, Also) for other in note.names),
    )


def _columns(row: type) -> Iterable[Column]:
    hints = typing.get_type_hints(row, include_extras=True)
    for one in _fields(row):
        plain, notes = _parts(hints[one.name])
        yield Column(_name(one.name, notes), sql_type_of(plain), _comment(notes), one.name)


def _marked(call: type[Call], hints: Mapping[str, object], mark: type) -> str | None:
    for one in _fields(call):
        if any(isinstance(note, mark) for note in _parts(hints[one.name])[1]):
            return one.name
    return None


def _unless(hints: Iterable[object]) -> tuple[str, ...]:
    notes = (note for hint in hints for note in _parts(hint)[1])
    return next((note.unless for note in notes if isinstance(note, RowLimit)), ())


def _fields(declared: type) -> tuple[Field[object], ...]:
    return fields(declared)


def _parts(hint: object) -> tuple[object, tuple[object, ...]]:
    """An annotation without its notes, and the notes."""
    if typing.get_origin(hint) is Annotated:
        plain, *notes = typing.get_args(hint)
        return plain, tuple(notes)
    return hint, ()


def _name(name: str, notes: Iterable[object]) -> str:
    return next((note.name for note in notes if isinstance(note, Named)), name)


def _comment(notes: Iterable[object]) -> str:
    return next((note for note in notes if isinstance(note, str)), "")
