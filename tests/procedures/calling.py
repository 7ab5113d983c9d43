"""Calling procedures from tests: rows as dictionaries, by the names of their columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakewarden.procedures.caller import PlainCaller
from lakewarden.procedures.invocation import invoke
from lakewarden.procedures.registry import PROCEDURES

Signature = tuple[list[str], list[str]]


def call(name: str, path: Path | str, **arguments: object) -> list[dict[str, Any]]:
    """The rows of a call on the table at a path."""
    procedure = PROCEDURES[name]
    names = [column.name for column in procedure.columns]
    rows = invoke(procedure, PlainCaller(), (), {"path": str(path), **arguments})
    return [dict(zip(names, row, strict=True)) for row in rows]


def signature(name: str) -> Signature:
    """What is promised of a procedure: its arguments by position, and its columns with types."""
    declared = PROCEDURES[name]
    return (
        [one.name for one in declared.parameters],
        [f"{one.name} {one.type}" for one in declared.columns],
    )


def assert_promises(promised: Mapping[str, Signature]) -> None:
    assert {name: signature(name) for name in promised} == promised
