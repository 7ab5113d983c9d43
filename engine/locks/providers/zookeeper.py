"""The ZooKeeper lock: the nodes of Curator's InterProcessMutex, which Java's provider uses.

A process that wants the lock makes an ephemeral node with the next number below the lock's node;
the lowest number has it. The node goes with the session, so a dead process holds nothing for long.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import InvalidRequest, Unavailable
from lakewarden.engine.locks.providers.port import (
    Acquired,
    Acquiring,
    HeldBy,
    Holder,
    LockNote,
    Unclear,
    decode_note,
    encode_note,
    foreign_holder,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import unavailable

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException, NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError

    HAS_KAZOO = True
except ImportError:
    HAS_KAZOO = False

# Curator's own names begin with `_c_`, those of other clients need not.
_NODE = re.compile(r".*lock-([0-9]{10})")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers, and how patient to be with them."""

    hosts: str
    session_seconds: float
    connection_seconds: float


class ZooKeeperLock:
    """The lock at a node, as one owner sees it; it keeps its place in the queue between tries."""

    def __init__(self, ensemble: Ensemble, path: str, ports: Ports) -> None:
        if not HAS_KAZOO:
            raise _missing_package()
        self._ensemble = ensemble
        self._path = path
        self._ports = ports
        self._owner = ports.ids.fresh()
        self._client: KazooClient | None = None

    @property
    def name(self) -> str:
        return f"ZooKeeper lock {self._path} at {self._ensemble.hosts}"

    @property
    def renew_every_seconds(self) -> None:
        return None

    def try_acquire(self) -> Acquiring:
        with self._reported():
            client = self._connected()
            client.ensure_path(self._path)
            queue = self._queue(client)
            if not self._mine(queue):
                # A repeated request may have made two nodes; both carry our id and go together.
                client.create(self._my_prefix(), self._note(), ephemeral=True, sequence=True)
                queue = self._queue(client)
            if not queue or self._owner in queue[0]:
                return Acquired() if queue else Unclear("The lock's node has vanished.")
            holder = self._holder_of(client, queue[0])
        if holder is None:
            return Unclear("The holder has just released it.")
        return HeldBy(holder, "It is released when its session ends.")

    def renew(self) -> bool:
        return self.is_held()

    def is_held(self) -> bool:
        if self._client is None:
            return False
        with self._reported():
            queue = self._queue(self._client)
            return bool(queue) and self._owner in queue[0]

    def release(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            with self._reported():
                for node in self._mine(self._queue(client)):
                    with suppress(NoNodeError):
                        client.delete(f"{self._path}/{node}")
        finally:
            # Closing the session removes the nodes as well, should deleting them have failed.
            _close(client)

    def holder(self) -> Holder | None:
        client = self._started()
        try:
            with self._reported():
                queue = self._queue(client)
                return self._holder_of(client, queue[0]) if queue else None
        finally:
            _close(client)

    def _connected(self) -> "KazooClient":
        if self._client is None:
            self._client = self._started()
        return self._client

    def _started(self) -> "KazooClient":
        client = KazooClient(self._ensemble.hosts, timeout=self._ensemble.session_seconds)
        try:
            with self._reported():
                client.start(self._ensemble.connection_seconds)
        except Unavailable:
            _close(client)
            raise
        return client

    def _queue(self, client: "KazooClient") -> list[str]:
        """The nodes of everybody who wants the lock, the one that has it first."""
        try:
            children: list[str] = client.get_children(self._path)
        except NoNodeError:
            return []
        numbered = [(match[1], match[0]) for match in map(_NODE.fullmatch, children) if match]
        return [node for _, node in sorted(numbered)]

    def _mine(self, queue: list[str]) -> list[str]:
        return [node for node in queue if self._owner in node]

    def _my_prefix(self) -> str:
        return f"{self._path}/_c_{self._owner}-lock-"

    def _note(self) -> bytes:
        process, now_ms = self._ports.processes.mine(), self._ports.clock.now_ms()
        return encode_note(LockNote.of(self._owner, process, now_ms))

    def _holder_of(self, client: "KazooClient", node: str) -> Holder | None:
        try:
            content, stat = client.get(f"{self._path}/{node}")
        except NoNodeError:
            return None
        note = decode_note(content, node)
        return note.holder if note else foreign_holder(content, int(stat.ctime))

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (KazooException, KazooTimeoutError) as cause:
            raise unavailable("reach", self.name, f"{type(cause).__name__}.") from cause


def _close(client: "KazooClient") -> None:
    client.stop()
    client.close()


def _missing_package() -> InvalidRequest:
    return InvalidRequest(
        "missing_package",
        what="Lakewarden cannot use a ZooKeeper lock.",
        why="The package kazoo is not installed.",
        now="Run: pip install lakewarden[zookeeper]",
    )
