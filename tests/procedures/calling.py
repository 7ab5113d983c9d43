"""Calling procedures from tests: rows as dictionaries, by the names of their columns."""

from collections.abc import Mapping
from pathlib import Path

from lakewarden.procedures.registry import PROCEDURES
from tests.procedures import calls
from tests.procedures.calls import Rows

Signature = tuple[list[str], list[str]]


def call(name: str, path: Path | str, **arguments: object) -> Rows:
    """The rows of a call on the table at a path."""
    return calls.call(name, path=str(path), **arguments)


def signature(name: str) -> Signature:
    """What is promised of a procedure: its arguments by position, and its columns with types."""
    declared = PROCEDURES[name]
    return (
        [one.name for one in declared.parameters],
        [f"{one.name} {one.type}" for one in declared.columns],
    )


def assert_promises(promised: Mapping[str, Signature]) -> None:
    assert {name: signature(name) for name in promised} == promised
