"""The in-process lock: one per table in this process. Other processes do not see it.

A table in memory needs no more. Elsewhere it spares the threads of one process wasted work; other
processes and engines need a lock of the table's own.
"""

from lakewarden.engine.locks.providers.port import Acquired, Acquiring, HeldBy, Holder
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Location

# Keyed by process too: a forked child inherits its parent's locks, and would never release them.
_Key = tuple[int, str]
_holders: dict[_Key, Holder] = {}


class InProcessLock:
    """The lock of the table at a location, as one owner sees it."""

    def __init__(self, location: Location, ports: Ports) -> None:
        self._place = _canonical(location.uri)
        self._key = (ports.processes.mine().pid, self._place)
        self._owner = ports.ids.fresh()
        self._clock = ports.clock
        self._mine: Holder | None = None

    @property
    def name(self) -> str:
        return f"in-process lock of {self._place}"

    @property
    def renew_every_seconds(self) -> None:
        return None

    def try_acquire(self) -> Acquiring:
        mine = Holder(f"owner {self._owner} in this process", self._clock.now_ms())
        # `setdefault` is one step of the interpreter, so of several threads one gets its own in.
        holder = _holders.setdefault(self._key, mine)
        if holder is not mine:
            return HeldBy(holder, "It is released when that operation ends.")
        self._mine = mine
        return Acquired()

    def renew(self) -> bool:
        return self.is_held()

    def is_held(self) -> bool:
        return self._mine is not None and _holders.get(self._key) is self._mine

    def release(self) -> None:
        if self.is_held():
            del _holders[self._key]
        self._mine = None

    def holder(self) -> Holder | None:
        return _holders.get(self._key)


def _canonical(uri: str) -> str:
    """One spelling for the addresses of one place."""
    scheme, separator, rest = uri.rstrip("/").partition(":")
    if scheme == "file":
        return "/" + rest.removeprefix("//localhost").lstrip("/")
    if scheme in ("s3a", "s3n"):
        return f"s3{separator}{rest}"
    return uri.rstrip("/")
