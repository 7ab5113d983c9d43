"""Contexts for cleans of golden tables."""

from pathlib import Path

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.context import Context


def context_of(path: Path, **arguments: str) -> Context:
    storage, ports = open_storage(Location(str(path))), Ports()
    given = {name.replace("__", "."): value for name, value in arguments.items()}
    settings = Settings.of(arguments={"lakewarden.clock.skew_max_seconds": 10**9, **given})
    return Context(storage, open_lock(storage, settings, ports), ports, settings)
