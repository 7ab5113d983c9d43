"""A storage that fails on demand: any storage behind a fault plan, with its calls counted.

Run an operation once without faults, take its `calls`, and run it again for each of their
`crash_plans`: that is the crash matrix. All storages seen from folders below share one count.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from threading import Lock
from typing import NoReturn, TypeVar

import pyarrow as pa

from lakewarden.engine.kernel.clock import Clock, ManualClock
from lakewarden.engine.storage.paths import checked_file, joined
from lakewarden.engine.storage.port import (
    NO_FILES,
    Creation,
    Entry,
    KnownFiles,
    Listing,
    Location,
    Storage,
    Unknown,
    Versioned,
    listing,
    ordered,
    unavailable,
)
from lakewarden.engine.storage.side_by_side import IN_TURN, Concurrency
from lakewarden.engine.storage.streams import PendingBuffer
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan, StorageCall

T = TypeVar("T")

_WITH_EFFECT = (FaultKind.FAIL_AFTER, FaultKind.LOST_ANSWER)
_LOST = (FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER)


class Crashed(BaseException):
    """The process died here. No handler of errors sees it, and no later call gets through."""


class FaultyStorage:
    """The same storage, but a plan decides which calls go wrong.

    Calls have an order, so that a plan means the same ones each time.
    """

    def __init__(
        self,
        inner: Storage,
        plan: FaultPlan | None = None,
        clock: Clock | None = None,
        concurrency: Concurrency = IN_TURN,
    ) -> None:
        self._inner = inner
        self._concurrency = concurrency
        self._script = _Script(plan or FaultPlan(), clock or ManualClock())
        self._folder = ""

    def __repr__(self) -> str:
        return f"FaultyStorage({self._inner!r}, {str(self._script.plan)!r})"

    @property
    def calls(self) -> tuple[StorageCall, ...]:
        """Every call so far, also those that went wrong."""
        return tuple(self._script.calls)

    @property
    def location(self) -> Location:
        return self._inner.location

    @property
    def has_exclusive_create(self) -> bool:
        return self._inner.has_exclusive_create

    @property
    def has_conditional_replace(self) -> bool:
        return self._inner.has_conditional_replace

    @property
    def has_file_times(self) -> bool:
        return self._inner.has_file_times

    @property
    def concurrency(self) -> Concurrency:
        return self._concurrency

    def below(self, folder: str) -> "FaultyStorage":
        inner = FaultyStorage(self._inner.below(folder), concurrency=self._concurrency)
        inner._script = self._script
        inner._folder = joined(self._folder, folder)
        return inner

    def uri(self, path: str) -> str:
        return self._inner.uri(path)

    def stat(self, path: str) -> Entry | None:
        return self._made("stat", path, partial(self._inner.stat, path))

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        found = self._made("list", folder, partial(self._inner.list, folder, known))
        return listing(self._mixed(folder, found.files), self._mixed(folder, found.folders))

    def walk(self, folder: str) -> tuple[Entry, ...]:
        found = self._made("walk", folder, partial(self._inner.walk, folder))
        return ordered(self._mixed(folder, found))

    def read(self, path: str) -> bytes:
        return self._made("read", path, partial(self._inner.read, path))

    def read_if_present(self, path: str) -> bytes | None:
        return self._made("read_if_present", path, partial(self._inner.read_if_present, path))

    def open(self, path: str) -> pa.NativeFile:
        return self._made("open", path, partial(self._inner.open, path))

    def put(self, path: str, payload: bytes) -> None:
        self._written("put", path, payload)

    def touch(self, path: str) -> bool:
        return self._made("touch", path, partial(self._inner.touch, path))

    def create(self, path: str) -> pa.NativeFile:
        # Opening and closing are two calls; the second one makes the file visible.
        publish = partial(self._written, "close", checked_file(path))
        return self._made(
            "create", path, lambda: PendingBuffer(uri=self.uri(path), publish=publish)
        )

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        create = partial(self._inner.create_exclusive, path)
        return self._made(
            "create_exclusive",
            path,
            partial(create, payload),
            torn=lambda chance: create(_torn(payload, chance)),
            lost=Unknown,
        )

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        # Who can date a file makes it elsewhere first: no half of it is ever seen.
        effect = partial(self._inner.create_dated, path, payload, modified_ms)
        return self._made("create_dated", path, effect, lost=Unknown)

    def read_versioned(self, path: str) -> Versioned | None:
        return self._made("read_versioned", path, partial(self._inner.read_versioned, path))

    def replace_if(self, path: str, payload: bytes, version: str) -> Creation:
        # No store that can do this ever leaves half of it behind.
        effect = partial(self._inner.replace_if, path, payload, version)
        return self._made("replace_if", path, effect, lost=Unknown)

    def delete(self, path: str) -> bool:
        return self._made("delete", path, partial(self._inner.delete, path))

    def delete_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_folder(self, folder: str) -> int:
        effect = partial(self._inner.delete_folder, folder)
        return self._made("delete_folder", folder, effect, torn=partial(self._thin_out, folder))

    def _written(self, operation: str, path: str, payload: bytes) -> None:
        put = partial(self._inner.put, path)
        self._made(
            operation,
            path,
            partial(put, payload),
            torn=lambda chance: put(_torn(payload, chance)),
        )

    def _thin_out(self, folder: str, chance: Random) -> None:
        entries = self._inner.walk(folder)
        for entry in chance.sample(entries, chance.randint(0, len(entries))):
            self._inner.delete(entry.path)

    def _mixed(self, folder: str, found: Sequence[T]) -> Sequence[T]:
        if not (self._script.plan.mixes_listings and found):
            return found
        chance = self._script.plan.chance(folder)
        mixed = [*found, *chance.choices(found, k=len(found) // 2 + 1)]
        chance.shuffle(mixed)
        return mixed

    def _made(
        self,
        operation: str,
        path: str,
        effect: Callable[[], T],
        *,
        torn: Callable[[Random], object] | None = None,
        lost: Callable[[str], T] | None = None,
    ) -> T:
        """Make a call as its fault wants it, or plainly."""
        call, fault = self._script.next(operation, joined(self._folder, path))
        if fault is None or fault.kind is FaultKind.DELAYED:
            return effect()
        if fault.kind is FaultKind.RETRIED:
            effect()
            return effect()
        if fault.kind in _WITH_EFFECT:
            effect()
        if fault.kind is FaultKind.TORN and torn is not None:
            torn(self._script.plan.chance(str(call.number)))
        if fault.is_fatal:
            self._script.die(call, fault)
        if fault.kind in _LOST and lost is not None:
            return lost(f"Planned fault {fault}.")
        raise unavailable(operation, self.uri(path), f"Planned fault {fault}.")


class _Script:
    """The plan, and how far it has come."""

    def __init__(self, plan: FaultPlan, clock: Clock) -> None:
        self.plan = plan
        self.calls: list[StorageCall] = []
        self._clock = clock
        self._lock = Lock()
        self._end: str | None = None

    def next(self, operation: str, path: str) -> tuple[StorageCall, Fault | None]:
        """Count a call, and say what shall happen to it."""
        with self._lock:
            if self._end is not None:
                raise Crashed(self._end)
            call = StorageCall(len(self.calls) + 1, operation, path)
            self.calls.append(call)
        fault = self.plan.at(call.number)
        if fault is not None and fault.delay_ms:
            self._clock.sleep(fault.delay_ms / 1000)
        return call, fault

    def die(self, call: StorageCall, fault: Fault) -> NoReturn:
        """End the process at a call."""
        self._end = f"Died at call {call} by {fault}; plan: {self.plan}"
        raise Crashed(self._end)


def _torn(payload: bytes, chance: Random) -> bytes:
    return payload[: chance.randrange(len(payload))] if payload else payload
