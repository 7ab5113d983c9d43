"""Calls of procedures as clients make them, and what of a table's folder they have changed."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakewarden.procedures.caller import Caller, PlainCaller
from lakewarden.procedures.invocation import invoke
from lakewarden.procedures.registry import procedure_named

Rows = list[dict[str, Any]]


def call(name: str, *positional: object, caller: Caller | None = None, **named: object) -> Rows:
    """The rows of a call, by the names of their columns."""
    procedure = procedure_named(name)
    rows = invoke(procedure, caller or PlainCaller(), positional, named)
    columns = [column.name for column in procedure.columns]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def call_one(name: str, *positional: object, **named: object) -> dict[str, Any]:
    """The only row of a call."""
    (row,) = call(name, *positional, **named)
    return row


def contents_of(folder: Path) -> Mapping[str, str]:
    """All files below a folder, each with a digest of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
