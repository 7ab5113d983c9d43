"""What public calls return shows itself: a few aligned lines, never a bare object."""

import inspect
import typing
from collections.abc import Iterator

from lakewarden import Table, table_service_handle
from lakewarden.engine.kernel.shown import Shown, ShownRows

# Handles, streams and what programs take apart.
NOT_SHOWN = {
    "Batches",
    "FileSource",
    "InstantState",
    "Settings",
    "Snapshot",
    "Table",
    "TableConfig",
    "TableServiceHandle",
}
# Only known while types are checked.
SPARKS = {"SparkSession": object, "DataFrame": object}


def public_calls() -> Iterator[tuple[str, object]]:
    owners = [Table, *vars(table_service_handle).values()]
    for owner in owners:
        if not inspect.isclass(owner) or owner.__module__ not in (
            Table.__module__,
            table_service_handle.__name__,
        ):
            continue
        for name, member in inspect.getmembers(owner):
            function = member.fget if isinstance(member, property) else member
            if not name.startswith("_") and callable(function):
                yield f"{owner.__name__}.{name}", getattr(function, "__func__", function)


def returned(function: object) -> Iterator[type]:
    """The classes of ours that a call may return, itself or one by one."""
    left = [typing.get_type_hints(function, localns=SPARKS).get("return")]
    while left:
        one = left.pop()
        found = typing.get_origin(one) or one
        if inspect.isclass(found) and found.__module__.startswith("lakewarden"):
            yield found
        else:
            left += typing.get_args(one)


def test_what_calls_return_shows_itself() -> None:
    bare = {
        f"{name} -> {one.__name__}"
        for name, call in public_calls()
        for one in returned(call)
        if not issubclass(one, (Shown, ShownRows)) and one.__name__ not in NOT_SHOWN
    }
    assert bare == set()


def test_calls_with_results_are_among_these() -> None:
    names = {name for name, call in public_calls() if any(returned(call))}
    assert {"Table.upsert", "Table.create_index", "Plan.cancel"} <= names
