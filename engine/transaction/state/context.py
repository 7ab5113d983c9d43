"""The context of an operation: the table's storage and lock, the ports, and what has been set."""

from dataclasses import dataclass

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import TableLock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the protocol's steps need; it holds nothing learned from the table."""

    storage: Storage
    lock: TableLock
    ports: Ports
    settings: Settings

    def now_ms(self) -> int:
        return self.ports.clock.now_ms()
