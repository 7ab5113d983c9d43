"""A storage under which others do something just before somebody takes the table's lock."""

from collections.abc import Callable

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.storage.faults import FaultPlan, FaultyStorage
from lakewarden.engine.storage.port import Creation, Storage

# With it the lock is a file, so that its taking is seen in the storage.
LOCK_IN_A_FILE = {"hoodie__write__lock__provider": "filesystem"}


class JustBefore(FaultyStorage):
    """Does it before the lock is taken for the nth time, counted from 0."""

    def __init__(
        self, inner: Storage, clock: Clock, do: Callable[[], object], nth: int = 0
    ) -> None:
        super().__init__(inner, FaultPlan(), clock)
        self._do, self._left = do, nth

    @property
    def has_done_it(self) -> bool:
        return self._left < 0

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        if path.endswith(".hoodie/lock"):
            self._left -= 1
            if self._left == -1:
                self._do()
        return super().create_exclusive(path, payload)
