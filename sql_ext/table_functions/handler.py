"""Handlers: what Spark's workers call for each path that a query gives to a function."""

from collections.abc import Iterator, Mapping

from lakewarden.procedures.caller import PlainCaller
from lakewarden.procedures.declaration import Procedure
from lakewarden.procedures.invocation import Row, invoke


def handler(procedure: Procedure, arguments: Mapping[str, object], caller: PlainCaller) -> type:
    """A class as Spark wants it; it travels with the procedure and the caller."""

    class Handler:
        def eval(self, path: str) -> Iterator[Row]:
            yield from rows(procedure, arguments, caller, path)

    return Handler


def rows(
    procedure: Procedure, arguments: Mapping[str, object], caller: PlainCaller, path: str | None
) -> Iterator[Row]:
    """The rows of one table; none for no path, as a join with no partner has none."""
    if path is not None:
        yield from invoke(procedure, caller, (), {"path": path, **arguments})
