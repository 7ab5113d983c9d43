"""The storage as an actor of a simulation has it: every call is two turns, and may go wrong."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, cast

import pyarrow as pa

from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.storage.port import Creation, Storage, Unknown, unavailable
from lakewarden.engine.storage.side_by_side import IN_TURN
from lakewarden.engine.storage.streams import PendingBuffer
from tests.simulation.scheduler import Actor, Killed, Scheduler

T = TypeVar("T")

READING = ("stat", "list", "walk", "read", "read_if_present", "open", "read_versioned")
OTHERS = ("touch", "replace_if", "delete", "delete_folder")
LOOK = ("list", ".hoodie/timeline")
FAULTS = ("fails before", "fails after", "request is lost", "answer is lost", "is made twice")

# Called after each effect, with the operation and the path.
Watch = Callable[[str, str], None]


def staged(inner: MemoryStorage, scheduler: Scheduler, actor: Actor, watch: Watch) -> Storage:
    """The same storage for an actor; `watch` sees every change as soon as it has taken place."""
    return cast(Storage, StagedStorage(inner, scheduler, actor, watch))


class StagedStorage:
    """See `staged`."""

    has_exclusive_create = True
    has_conditional_replace = True
    has_file_times = True
    concurrency = IN_TURN

    def __init__(
        self,
        inner: MemoryStorage,
        scheduler: Scheduler,
        actor: Actor,
        watch: Watch,
        prefix: str = "",
    ) -> None:
        self._inner = inner
        self._prefix = prefix
        self._scheduler = scheduler
        self._actor = actor
        self._watch = watch
        self.location = inner.location
        self.uri = inner.uri
        for operation in READING:
            setattr(self, operation, partial(self._read, operation, getattr(inner, operation)))
        for operation in OTHERS:
            setattr(self, operation, partial(self._change, operation, getattr(inner, operation)))
        self.put = partial(self._change, "put", inner.put)

    def below(self, folder: str) -> "StagedStorage":
        prefix = f"{self._prefix}{folder}/"
        inner = self._inner.below(folder)
        return StagedStorage(inner, self._scheduler, self._actor, self._watch, prefix)

    def create(self, path: str) -> pa.NativeFile:
        # Only closing makes the file visible.
        publish = partial(self._change, "close", self._inner.put, path)
        return PendingBuffer(uri=self.uri(path), publish=publish)

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        effect = self._inner.create_exclusive
        return self._change("create_exclusive", effect, path, payload, lost=Unknown)

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        effect = self._inner.create_dated
        return self._change("create_dated", effect, path, payload, modified_ms, lost=Unknown)

    def delete_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)  # type: ignore[attr-defined]

    def _read(self, operation: str, effect: Callable[..., T], path: str, *arguments: object) -> T:
        """Reading changes nothing, so one turn before it is enough."""
        if not self._scheduler.is_beating:
            self._await_turn()
            self._scheduler.note(self._actor, operation, self._prefix + path)
            if self._scheduler.draws_fault():
                self._fails(operation, path, "fails before")
            self._actor.has_looked = (operation, self._prefix + path) == LOOK
        return effect(path, *arguments)

    def _change(
        self,
        operation: str,
        effect: Callable[..., T],
        path: str,
        *arguments: object,
        lost: Callable[[str], T] | None = None,
    ) -> T:
        scheduler, actor = self._scheduler, self._actor
        if scheduler.is_beating:
            scheduler.note(actor, operation, self._prefix + path, "beat")
            return self._done(operation, effect, path, arguments)
        self._await_turn()
        fault = scheduler.chance.choice(FAULTS) if scheduler.draws_fault() else ""
        if scheduler.draws_kill():
            scheduler.note(actor, operation, self._prefix + path, "dies before")
            scheduler.kill(actor)
        if fault in ("fails before", "request is lost"):
            return self._lost(operation, path, fault, lost)
        scheduler.note(actor, operation, self._prefix + path)
        result = self._done(operation, effect, path, arguments)
        if fault == "is made twice":
            scheduler.counts.faults += 1
            result = self._done(operation, effect, path, arguments)
        if scheduler.draws_kill():
            scheduler.note(actor, operation, self._prefix + path, "dies after")
            scheduler.kill(actor)
        self._await_turn()
        if fault in ("fails after", "answer is lost"):
            return self._lost(operation, path, fault, lost)
        return result

    def _done(
        self, operation: str, effect: Callable[..., T], path: str, arguments: tuple[object, ...]
    ) -> T:
        result = effect(path, *arguments)
        try:
            self._watch(operation, self._prefix + path)
        except AssertionError as violation:
            self._scheduler.broken(violation)
        return result

    def _lost(self, operation: str, path: str, fault: str, lost: Callable[[str], T] | None) -> T:
        if lost is None or fault.startswith("fails"):
            self._fails(operation, path, fault)
        assert lost is not None
        self._scheduler.counts.faults += 1
        self._scheduler.note(self._actor, operation, self._prefix + path, fault)
        return lost(f"The {fault}.")

    def _fails(self, operation: str, path: str, fault: str) -> None:
        self._scheduler.counts.faults += 1
        self._scheduler.note(self._actor, operation, self._prefix + path, fault)
        raise unavailable(operation, self.uri(path), f"It {fault}.")

    def _await_turn(self) -> None:
        if self._actor.is_dead:
            raise Killed
        self._scheduler.turn(self._actor)
