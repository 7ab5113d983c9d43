"""Contexts of operations on tables in a folder, as the tests of services need them."""

from collections.abc import Mapping
from pathlib import Path

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.context import Context


def local_context(path: Path, arguments: Mapping[str, object]) -> Context:
    """What an operation on a table needs; settings are given as they are for one operation."""
    storage, ports = open_storage(Location(str(path))), Ports(executor=LocalExecutor(1))
    settings = Settings.of(arguments=arguments)
    return Context(storage, open_lock(storage, settings, ports), ports, settings)
