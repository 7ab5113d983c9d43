"""Calls: Spark has evaluated the arguments; bind them, run the call, return its rows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from lakewarden.procedures.binding import Row, assign, bind, invoke
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.registry import procedure_named
from lakewarden.sql_ext.session.permitted import check_settings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check(name: str, positional: int, named: Sequence[str]) -> None:
    """Refuse a call that names what there is not, before its arguments are worth anything."""
    assign(procedure_named(name), [None] * positional, dict.fromkeys(named))


def call(
    caller: Caller, name: str, positional: Sequence[object], named: Mapping[str, object]
) -> list[Row]:
    """Call a procedure; the rows as Spark's own values."""
    procedure = procedure_named(name)
    given = bind(procedure, positional, named).values()
    for settings in (caller.settings, *(one for one in given if isinstance(one, Mapping))):
        check_settings(caller.permissions, settings)
    return spark_rows(invoke(procedure, caller, positional, named))


def spark_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows with Spark's own values."""
    return [tuple(map(_cell, row)) for row in rows]


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
