"""The context of an operation: the table's storage and lock, the ports, and what has been set."""

from dataclasses import dataclass, field

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import TableLock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import Memory
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the protocol's steps need; nothing is decided by what it remembers."""

    storage: Storage
    lock: TableLock
    ports: Ports
    settings: Settings
    memory: Memory = field(default_factory=Memory)

    def now_ms(self) -> int:
        return self.ports.clock.now_ms()
