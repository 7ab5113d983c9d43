"""SQL types: what arguments and columns can be, and the Python types that stand for them."""

import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from lakewarden.engine.kernel.errors import Defect


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
