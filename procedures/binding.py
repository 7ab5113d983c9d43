"""Binding: arguments, in any spelling and near type, become those that a procedure declares."""

import difflib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import flag
from lakewarden.procedures.declaring.declaration import Parameter, Procedure
from lakewarden.procedures.declaring.option_text import parse_options
from lakewarden.procedures.declaring.sql_types import SqlType

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
