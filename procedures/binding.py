"""Binding: arguments, in any spelling and near type, become those that a procedure declares.

Invocation: one call of a procedure, from its arguments to its rows.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import flag
from lakewarden.procedures.conditions.row_filter import row_filter
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Column, Parameter, Procedure, SqlType
from lakewarden.procedures.declaring.texts import parse_options

_BIGINT_END = 1 << 63


def bind(
    procedure: Procedure, positional: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """The value of every parameter: those by position first, then those by name."""
    given = assign(procedure, positional, named)
    return {one.name: _value(procedure, one, given.get(one)) for one in procedure.parameters}


def assign(
    procedure: Procedure, positional: Sequence[object], named: Mapping[str, object]
) -> dict[Parameter, object]:
    """Which parameter each argument is for, whatever its value."""
    if len(positional) > len(procedure.parameters):
        raise _too_many(procedure, len(positional))
    given = dict(zip(procedure.parameters, positional, strict=False))
    for name, value in named.items():
        parameter = parameter_named(procedure, name)
        if parameter in given:
            raise _repeated(procedure, parameter)
        given[parameter] = value
    for parameter in procedure.parameters:
        if parameter.is_required and parameter not in given:
            raise _missing(procedure, parameter)
    return given


def parameter_named(procedure: Procedure, name: str) -> Parameter:
    """The parameter with a name in any of its spellings; case and underscores don't matter."""
    known = {_plain(spelling): one for one in procedure.parameters for spelling in one.spellings}
    found = known.get(_plain(name))
    if found is None:
        raise _unknown(procedure, name)
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _value(procedure: Procedure, parameter: Parameter, given: object) -> object:
    if given is None:
        if parameter.is_required:
            raise _missing(procedure, parameter)
        return parameter.default
    try:
        return coerce(given, parameter.type)
    except (TypeError, ValueError) as cause:
        raise _bad_value(procedure, parameter, given, str(cause)) from None


def coerce(value: object, type: SqlType) -> object:
    """A value as a type wants it; `ValueError` where it can't be one."""
    match type:
        case SqlType.STRING:
            return _text(value)
        case SqlType.BIGINT:
            return _integer(value)
        case SqlType.DOUBLE:
            return float(str(value))
        case SqlType.BOOLEAN:
            return value if isinstance(value, bool) else flag(str(value))
        case SqlType.TIMESTAMP:
            return _moment(value)
        case SqlType.STRINGS:
            parts = value.split(",") if isinstance(value, str) else _sequence(value)
            return tuple(str(part).strip() for part in parts)
        case SqlType.OPTIONS:
            return _options(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("it must be a text")


def _integer(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("it must be a whole number")
    if not isinstance(value, int | str):
        raise ValueError("it must be a whole number")
    number = int(value)
    if not -_BIGINT_END <= number < _BIGINT_END:
        raise ValueError("it has too many digits")
    return number


def _moment(value: object) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _sequence(value: object) -> Sequence[object]:
    if isinstance(value, list | tuple):
        return value
    raise ValueError("it must be a list of texts")


def _options(value: object) -> Mapping[str, str]:
    if isinstance(value, str):
        return parse_options(value)
    if isinstance(value, Mapping):
        return {_text(key): _text(item) for key, item in value.items()}
    raise ValueError("it must be 'key=value,key2=value2' or a MAP")


def _unknown(procedure: Procedure, name: str) -> InvalidRequest:
    spellings = [spelling for one in procedure.parameters for spelling in one.spellings]
    nearest = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=0.5)
    names = ", ".join(one.name for one in procedure.parameters)
    return InvalidRequest(
        "unknown_argument",
        what=f"{procedure.name} has no argument {name!r}.",
        why=f"It has {names}.",
        now=f"Did you mean {nearest[0]!r}?" if nearest else f"See help('{procedure.name}').",
        procedure=procedure.name,
        argument=name,
    )


def _repeated(procedure: Procedure, parameter: Parameter) -> InvalidRequest:
    return InvalidRequest(
        "repeated_argument",
        what=f"The call gives {parameter.name} of {procedure.name} twice.",
        why="It is there once by position or in another spelling, and once by name.",
        now="Leave one of them out.",
        procedure=procedure.name,
        argument=parameter.name,
    )


def _too_many(procedure: Procedure, count: int) -> InvalidRequest:
    return InvalidRequest(
        "too_many_arguments",
        what=f"The call gives {procedure.name} {count} arguments.",
        why=f"It takes {len(procedure.parameters)}.",
        now=f"See help('{procedure.name}').",
        procedure=procedure.name,
    )


def _missing(procedure: Procedure, parameter: Parameter) -> InvalidRequest:
    return InvalidRequest(
        "missing_argument",
        what=f"{procedure.name} needs {parameter.name}.",
        why=parameter.comment or "This argument is required.",
        now=f"Add {parameter.name} => ....",
        procedure=procedure.name,
        argument=parameter.name,
    )


def _bad_value(
    procedure: Procedure, parameter: Parameter, given: object, cause: str
) -> InvalidRequest:
    return InvalidRequest(
        "bad_argument",
        what=f"{parameter.name} => {given!r} is not valid for {procedure.name}.",
        why=f"Its type is {parameter.type}: {cause}.",
        now=f"Pass a {parameter.type}. {parameter.comment}".strip(),
        procedure=procedure.name,
        argument=parameter.name,
    )


Row = tuple[object, ...]


def invoke(
    procedure: Procedure,
    caller: Caller,
    positional: Sequence[object] = (),
    named: Mapping[str, object] | None = None,
) -> Iterator[Row]:
    """Call a procedure; the rows are in the order of its columns.

    Whatever is wrong with the arguments is said before anything is looked at, or done.
    """
    values = bind(procedure, positional, named or {})
    changes = procedure.is_mutating and not values.get("dry_run", False)
    # What only shows may be asked to delete what it has found.
    if changes or values.get("need_delete", False):
        caller.permissions.check_change(procedure.name)
    meets = _filter(procedure, values)
    limit = _limit(procedure, values)
    caller.check_interrupted()
    # A field has the parameter's name unless Python can't spell it, which no argument needs.
    rows = procedure.call(**values).run(caller)
    heeded = _heeding(caller, _tuples(procedure, rows))
    return islice(filter(meets, heeded), limit)


def _tuples(procedure: Procedure, rows: Iterable[object]) -> Iterator[Row]:
    cells = [_cell(column) for column in procedure.columns]
    for row in rows:
        yield tuple(cell(row) for cell in cells)


def _cell(column: Column) -> Callable[[object], object]:
    """The value of a column; where Python takes a whole number for a float, clients see nothing."""
    value = attrgetter(column.field)
    if column.type is not SqlType.DOUBLE:
        return value
    return lambda row: None if value(row) is None else float(value(row))


def _filter(procedure: Procedure, values: Mapping[str, object]) -> Callable[[Row], bool]:
    """Whether a row is wanted."""
    text = values.get(procedure.filter_parameter or "")
    if not isinstance(text, str) or not text.strip():
        return lambda _: True
    return row_filter(text, procedure.columns)


def _limit(procedure: Procedure, values: Mapping[str, object]) -> int | None:
    unless = procedure.limit_unless
    if procedure.limit_parameter is None or (unless and all(values[one] for one in unless)):
        return None
    limit = values[procedure.limit_parameter]
    if not isinstance(limit, int):
        return None
    if limit < 0:
        raise InvalidRequest(
            "bad_argument",
            what=f"limit => {limit} is not valid.",
            why="A limit is the largest number of rows.",
            now="Give zero or a larger number.",
            argument="limit",
        )
    return limit


def _heeding(caller: Caller, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        caller.check_interrupted()
        yield row
