"""Calls of procedures as clients make them, and what of a table's folder they have changed."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import kept_settings, load_config
from lakewarden.engine.transaction.state.context import Context
from lakewarden.procedures.binding import invoke
from lakewarden.procedures.declaring.caller import Caller, PlainCaller
from lakewarden.procedures.declaring.declaration import SqlType
from lakewarden.procedures.registry import procedure_named

Rows = list[dict[str, Any]]
PYTHON_TYPES = {
    SqlType.STRING: (str,),
    SqlType.BIGINT: (int,),
    SqlType.DOUBLE: (float,),
    SqlType.BOOLEAN: (bool,),
    SqlType.TIMESTAMP: (datetime,),
    SqlType.STRINGS: (tuple,),
    SqlType.OPTIONS: (dict,),
}


def call(name: str, *positional: object, caller: Caller | None = None, **named: object) -> Rows:
    """The rows of a call, by the names of their columns; each cell is what its column says."""
    procedure = procedure_named(name)
    rows = list(invoke(procedure, caller or PlainCaller(), positional, named))
    for row in rows:
        for column, cell in zip(procedure.columns, row, strict=True):
            # A flag is a number for Python, but not for a client.
            assert cell is None or type(cell) in PYTHON_TYPES[column.type], (column.name, cell)
    columns = [column.name for column in procedure.columns]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def call_one(name: str, *positional: object, **named: object) -> dict[str, Any]:
    """The only row of a call."""
    (row,) = call(name, *positional, **named)
    return row


def context_of(path: str) -> Context:
    """What an operation on a table needs, as another process would have it."""
    storage, ports = open_storage(Location(path)), Ports()
    settings = Settings.of(table=kept_settings(load_config(storage).properties))
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def contents_of(folder: Path) -> Mapping[str, str]:
    """All files below a folder, each with a digest of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
