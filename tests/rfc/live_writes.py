"""Live writes: writes that have announced their file groups, and stand still while alive."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import cast

from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.faults import Crashed
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write import operations
from lakewarden.engine.write.request import WriteRequest
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import ServiceWorld, updated

PATIENCE_SECONDS = 60
LATEST = updated(ts=9)


def standing_write(world: ServiceWorld, request: WriteRequest, **options: object) -> str:
    """A write that has just announced its file groups; its instant."""
    stage = _Standing(world.storage)
    with suppress(Crashed):
        TableWriter(world.context(61, cast(Storage, stage), **options)).write(request)
    return max(one.requested for one in world.snapshot().timeline.active.pending())


class _Standing:
    """A storage on which a write stands still when it is about to make its first file."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self._is_standing = False

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        return partial(self._called, name, found) if callable(found) else found

    def _called(self, name: str, found: Callable[..., object], *arguments: object) -> object:
        path = str(arguments[0]) if arguments else ""
        self._is_standing |= name == "put" and path.startswith(".hoodie/.temp/")
        if self._is_standing:
            raise Crashed
        return found(*arguments)


class LiveWrite:
    """A write that has begun, announces when asked to, and then stands still with fresh heartbeats.

    It has a thread of its own, which runs only while the other one waits for it.
    """

    def __init__(self, world: ServiceWorld) -> None:
        self._inner: Storage = world.storage
        self._has_begun, self._may_announce = Event(), Event()
        self._is_dead = False
        context = world.context(60, cast(Storage, self))
        self._thread = Thread(target=partial(self._write, context))
        self._thread.start()
        assert self._has_begun.wait(PATIENCE_SECONDS)

    def announce(self) -> None:
        self._may_announce.set()
        self._thread.join(PATIENCE_SECONDS)
        assert self._is_dead

    def _write(self, context: Context) -> None:
        with suppress(Crashed):
            TableWriter(context).write(operations.upsert(LATEST.table()))

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        return partial(self._called, name, found) if callable(found) else found

    def _called(self, name: str, found: Callable[..., object], *arguments: object) -> object:
        path = str(arguments[0]) if arguments else ""
        if name == "create_exclusive" and path.endswith(".inflight"):
            self._has_begun.set()
            assert self._may_announce.wait(PATIENCE_SECONDS)
        self._is_dead |= name == "put" and path.startswith(".hoodie/.temp/")
        if self._is_dead:
            raise Crashed
        return found(*arguments)
