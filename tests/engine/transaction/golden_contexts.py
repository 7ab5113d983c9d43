"""Contexts on golden tables whose writers have failed."""

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.state.context import Context


def context_of(storage: Storage) -> Context:
    ports, settings = Ports(), Settings()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def slices(storage: Storage, *, use_metadata: bool) -> tuple[FileSlice, ...]:
    state = load_snapshot(storage)
    groups = state.file_groups(state.visibility(), None, use_metadata=use_metadata)
    return tuple(group.latest_merged() for group in groups)
