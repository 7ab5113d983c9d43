"""A storage under which others do something just before a file is created, such as the lock."""

from collections.abc import Callable

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.storage.port import Creation, Storage
from lakewarden.engine.storage.side_by_side import IN_TURN, Concurrency
from lakewarden.engine.testing.faults import FaultPlan, FaultyStorage

# With it the lock is a file, so that its taking is seen in the storage.
LOCK_IN_A_FILE = {"hoodie__write__lock__provider": "filesystem"}


class JustBefore(FaultyStorage):
    """Does it before the lock, or a file of another name, is created for the nth time from 0."""

    def __init__(
        self,
        inner: Storage,
        clock: Clock,
        do: Callable[[], object],
        nth: int = 0,
        *,
        name: str = ".hoodie/lock",
        concurrency: Concurrency = IN_TURN,
    ) -> None:
        super().__init__(inner, FaultPlan(), clock, concurrency)
        self._do, self._left, self._name = do, nth, name

    @property
    def has_done_it(self) -> bool:
        return self._left < 0

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        if path.endswith(self._name):
            self._left -= 1
            if self._left == -1:
                self._do()
        return super().create_exclusive(path, payload)
