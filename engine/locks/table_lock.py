"""The table lock: waits for a provider's lock, keeps it alive while it is needed, gives it back.

Steps of `lock`: take, renew, check, give-back, break. The last one is of providers whose lock stays
when its holder dies.

Opening a table's lock: which provider the settings name, or which suits the storage.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import (
    Conflict,
    CorruptTable,
    InvalidRequest,
    LakewardenError,
    Unavailable,
)
from lakewarden.engine.kernel.events import Event, Figures
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.kernel.settings import Origin, Settings
from lakewarden.engine.locks.providers.file_system import Expiry, FileSystemLock
from lakewarden.engine.locks.providers.in_process import InProcessLock
from lakewarden.engine.locks.providers.port import (
    Acquired,
    Acquiring,
    HeldBy,
    Holder,
    LockProvider,
    Unclear,
)
from lakewarden.engine.locks.providers.storage_lock import LockValidity, StorageLock
from lakewarden.engine.locks.providers.zookeeper import Ensemble, ZooKeeperLock
from lakewarden.engine.locks.settings import (
    EXPIRY_SECONDS,
    FILE_EXPIRE_MINUTES,
    FILE_FOLDER,
    PAUSE_MAX_MS,
    PAUSE_MS,
    PROVIDER,
    STORAGE_RENEW_SECONDS,
    STORAGE_VALIDITY_SECONDS,
    WAIT_MS,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_CONNECTION_MS,
    ZOOKEEPER_LOCK_KEY,
    ZOOKEEPER_SESSION_MS,
    ZOOKEEPER_URL,
)
from lakewarden.engine.run.executor import try_again
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.run.processes import always_wanted
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.storage.protocols import scheme_of
from lakewarden.engine.table.config import PROPERTIES_PATH

# A lock is usually held for milliseconds, and sometimes for minutes. Pausing for a share of the
# time waited so far is never late by more than that share, and looks seldom when it takes long.
PAUSE_SHARE = 0.1
PAUSE_MIN_SECONDS = 0.002
# Shorter waits are part of the day; the next word comes after twice the time.
SAYS_AFTER_SECONDS = 2.0
# Longer than any lock is valid that is not renewed.
RELEASE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a lock, and how long to look away meanwhile."""

    wait_seconds: float
    pause_max_seconds: float = 1.0


class HeldLock:
    """A lock that was taken; whether it is still ours must be asked before acting on it."""

    def __init__(self, provider: LockProvider, clock: Clock) -> None:
        self._provider = provider
        self._clock = clock
        self._since_ms = clock.now_ms()
        self._lost_ms: int | None = None

    @property
    def name(self) -> str:
        return self._provider.name

    def assert_held(self) -> None:
        """Step `lock.check`: raise `lock_lost` unless the lock is ours, asked where it is."""
        if self._lost_ms is None and not self._provider.is_held():
            self._lost_ms = self._clock.now_ms()
        if self._lost_ms is not None:
            raise self._lost(self._lost_ms)

    def renew(self) -> None:
        """Step `lock.renew`: prolong it, or remember that it is lost; out of reach, try again."""
        with suppress(LakewardenError):
            if self._lost_ms is None and not self._provider.renew():
                self._lost_ms = self._clock.now_ms()

    def _lost(self, lost_ms: int) -> Conflict:
        held_seconds = (lost_ms - self._since_ms) / 1000
        return Conflict(
            "lock_lost",
            what=f"This process has lost the {self.name}.",
            why=(
                f"This process took it at {self._since_ms} ms and lost it within "
                f"{held_seconds:.1f} s."
            ),
            now="Nothing was changed. Try again.",
            lock=self.name,
            since_ms=self._since_ms,
            lost_ms=lost_ms,
        )


class TableLock:
    """The lock of one table. Every `hold` is an owner of its own, in whatever thread."""

    def __init__(
        self, open_provider: Callable[[], LockProvider], patience: Patience, ports: Ports
    ) -> None:
        self._open_provider = open_provider
        self._patience = patience
        self._ports = ports

    @property
    def name(self) -> str:
        """Kind and place of the lock."""
        return self._open_provider().name

    def holder(self) -> Holder | None:
        """Who holds the lock now, for display."""
        return self._open_provider().holder()

    @contextmanager
    def hold(self, *, while_wanted: bool = False) -> Iterator[HeldLock]:
        """Hold the lock; `lock_held` when other processes keep it for too long.

        `while_wanted` is for a caller that has done nothing yet: it stops waiting once cancelled.
        """
        provider = self._open_provider()
        try:
            self._acquire(provider, self._ports.check_wanted if while_wanted else always_wanted)
            held = HeldLock(provider, self._ports.clock)
            with self._renewing(held, provider.renew_every_seconds):
                yield held
        finally:
            # Also when it was never clear whether we got it.
            self._release(provider)

    def _acquire(self, provider: LockProvider, check_wanted: Callable[[], None]) -> None:
        """Step `lock.take`."""
        clock, began = self._ports.clock, self._ports.clock.elapsed_seconds()
        says_next = SAYS_AFTER_SECONDS
        while not isinstance(answer := _tried(provider), Acquired):
            check_wanted()
            waited = clock.elapsed_seconds() - began
            left = self._patience.wait_seconds - waited
            if left <= 0:
                raise _gave_up(provider, answer, waited, clock.now_ms())
            if waited >= says_next:
                self._ports.events(_waited(provider, answer, waited, left, clock.now_ms()))
                says_next = waited * 2
            clock.sleep(min(left, self._pause(waited)))

    def _pause(self, waited: float) -> float:
        longest = max(PAUSE_MIN_SECONDS, self._patience.pause_max_seconds)
        pause = min(max(PAUSE_MIN_SECONDS, waited * PAUSE_SHARE), longest)
        return pause * (0.5 + _chance(self._ports.ids))

    @contextmanager
    def _renewing(self, held: HeldLock, every_seconds: float | None) -> Iterator[None]:
        if every_seconds is None:
            yield
            return
        repetition = self._ports.background.repeat(held.renew, every_seconds=every_seconds)
        try:
            yield
        finally:
            repetition.stop()

    def _release(self, provider: LockProvider) -> None:
        """Step `lock.give-back`."""
        # What was done under the lock is done, whether or not giving it back works: it expires.
        try:
            provider.release()
        except LakewardenError as error:
            figures = {"lock": provider.name, "reason": str(error)}
            self._ports.events(Event("lock_not_released", figures))
            ports = self._ports
            try_again(ports.background, ports.clock, provider.release, most_seconds=RELEASE_SECONDS)


def _tried(provider: LockProvider) -> Acquiring:
    try:
        return provider.try_acquire()
    except Unavailable as error:
        # What was denied, or has no room, will be so next time as well.
        if error.code != "storage_unavailable":
            raise
        return Unclear(str(error))


def _waited(
    provider: LockProvider, answer: HeldBy | Unclear, waited: float, left: float, now_ms: int
) -> Event:
    """Why this process stands still."""
    match answer:
        case HeldBy(holder):
            reason = f"{holder.owner} has held it{_age(holder, now_ms)}"
        case Unclear(cause):
            reason = cause.rstrip(".")
    figures: Figures = {"lock": provider.name, "waited": waited, "left": left, "reason": reason}
    return Event("lock_waited", figures)


def _chance(ids: Ids) -> float:
    """A number from 0 to 1, so that those who wait do not all look at the same moments."""
    return int(ids.fresh()[:8], 16) / 2**32


def _gave_up(
    provider: LockProvider, answer: HeldBy | Unclear, waited: float, now_ms: int
) -> LakewardenError:
    longer = "To wait longer, raise hoodie.write.lock.wait_time_ms."
    match answer:
        case Unclear(cause):
            return Unavailable(
                "lock_unavailable",
                what=f"Lakewarden could not take the {provider.name} within {waited:.1f} s.",
                why=cause,
                now=f"Check that the lock's storage can be reached, then try again. {longer}",
                lock=provider.name,
            )
        case HeldBy(holder, remedy):
            return Conflict(
                "lock_held",
                what=f"The {provider.name} is held by {holder.owner}{_age(holder, now_ms)}.",
                why=f"It was not released within {waited:.1f} s.",
                now=f"{remedy} {longer}".strip(),
                lock=provider.name,
                owner=holder.owner,
                since_ms=holder.since_ms,
            )


def _age(holder: Holder, now_ms: int) -> str:
    return "" if holder.since_ms is None else f" for {(now_ms - holder.since_ms) / 1000:.1f} s"


TABLE_FOLDER = ".hoodie"
RENEWALS_MIN = 10

_OpenProvider = Callable[[Storage, Settings, Ports], Callable[[], LockProvider]]


def open_lock(storage: Storage, settings: Settings, ports: Ports) -> TableLock:
    """The lock of the table in a storage; refuses what is not supported by name."""
    named = settings[PROVIDER]
    opener = _OPENERS.get(_short(named)) if named else _fitting(storage)
    if opener is None:
        raise _unsupported(named)
    return TableLock(opener(storage, settings, ports), _patience(settings), ports)


def _short(provider: str) -> str:
    """What is left of `org.apache.hudi...FileSystemBasedLockProvider` or `file_system`."""
    name = provider.rpartition(".")[2].lower().replace("_", "").replace("-", "")
    return name.removesuffix("provider").removesuffix("lock").replace("based", "")


def _fitting(storage: Storage) -> _OpenProvider:
    """In memory a table belongs to one process; elsewhere the storage decides which lock fits."""
    scheme = scheme_of(storage.location.uri)
    if scheme in (None, "file"):
        return _file_system
    return _storage if storage.has_conditional_replace and scheme != "memory" else _in_process


def _patience(settings: Settings) -> Patience:
    pause_ms = min(settings[PAUSE_MS], settings[PAUSE_MAX_MS])
    return Patience(settings[WAIT_MS] / 1000, pause_ms / 1000)


def _in_process(storage: Storage, settings: Settings, ports: Ports) -> Callable[[], LockProvider]:
    return partial(InProcessLock, storage.location, ports)


def _file_system(storage: Storage, settings: Settings, ports: Ports) -> Callable[[], LockProvider]:
    minutes = settings[FILE_EXPIRE_MINUTES]
    expiry = Expiry(settings[EXPIRY_SECONDS], minutes * 60 if minutes else None)
    place, folder = storage, TABLE_FOLDER
    if settings[FILE_FOLDER]:
        _refuse_kept_elsewhere(storage, settings)
        options = storage.location.options
        place, folder = open_storage(Location(settings[FILE_FOLDER], options)), ""
    if not place.has_exclusive_create or scheme_of(place.location.uri) not in _WITH_FILES:
        raise _unfit("FileSystemBasedLockProvider", place, "It has no lock files.")
    return partial(FileSystemLock, place, folder, expiry, ports)


def _refuse_kept_elsewhere(storage: Storage, settings: Settings) -> None:
    """A table does not decide that files are made and removed outside of it; its users may."""
    found = settings.resolve(FILE_FOLDER)
    if found.origin is not Origin.TABLE:
        return
    inside = found.value.removeprefix(f"{storage.location.uri.rstrip('/')}/")
    if inside == found.value or any(name in ("", ".", "..") for name in inside.split("/")):
        raise CorruptTable(
            "path_outside_table",
            what=f"{PROPERTIES_PATH} says {found.key}={found.value!r:.200}.",
            why=(
                "That path is outside the table, and a table's own files may not name such a path."
            ),
            now=f"Pass {found.key} to every writer instead. Nothing there was opened or created.",
            path=PROPERTIES_PATH,
            named=found.value,
        )


def _storage(storage: Storage, settings: Settings, ports: Ports) -> Callable[[], LockProvider]:
    if not storage.has_conditional_replace:
        raise _unfit("StorageBasedLockProvider", storage, "It has no conditional writes.")
    validity = LockValidity(settings[STORAGE_VALIDITY_SECONDS], settings[STORAGE_RENEW_SECONDS])
    if validity.valid_seconds < RENEWALS_MIN * validity.renew_seconds:
        raise InvalidRequest(
            "bad_setting",
            what=f"{STORAGE_VALIDITY_SECONDS.key} = {validity.valid_seconds} is too short.",
            why=f"Java requires at least {RENEWALS_MIN} times {STORAGE_RENEW_SECONDS.key}.",
            now="Raise it, or renew more often.",
            setting=STORAGE_VALIDITY_SECONDS.key,
            value=validity.valid_seconds,
        )
    return partial(StorageLock, storage, validity, ports)


def _zookeeper(storage: Storage, settings: Settings, ports: Ports) -> Callable[[], LockProvider]:
    for setting in (ZOOKEEPER_URL, ZOOKEEPER_BASE_PATH, ZOOKEEPER_LOCK_KEY):
        if not settings[setting]:
            raise InvalidRequest(
                "missing_setting",
                what=f"The ZooKeeper lock needs {setting.key}.",
                why=f"It says: {setting.description}.",
                now="Set it to the value that all other writers of the table use.",
                setting=setting.key,
            )
    ensemble = Ensemble(
        settings[ZOOKEEPER_URL],
        settings[ZOOKEEPER_SESSION_MS] / 1000,
        settings[ZOOKEEPER_CONNECTION_MS] / 1000,
    )
    path = f"/{settings[ZOOKEEPER_BASE_PATH].strip('/')}/{settings[ZOOKEEPER_LOCK_KEY].strip('/')}"
    return partial(ZooKeeperLock, ensemble, path, ports)


_WITH_FILES = (None, "file", "memory")
_OPENERS: dict[str, _OpenProvider] = {
    "inprocess": _in_process,
    "filesystem": _file_system,
    "storage": _storage,
    "zookeeper": _zookeeper,
}


def _unsupported(provider: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_lock_provider",
        what=f"The lock provider {provider!r} is not supported.",
        why="A lock works only if all writers of a table share it.",
        now=f"Use one of {', '.join(sorted(_OPENERS))} in all writers.",
        provider=provider,
    )


def _unfit(provider: str, storage: Storage, reason: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_lock_place",
        what=f"{provider} does not work at {storage.location.uri}.",
        why=f"{reason} Two writers could both believe they hold the lock.",
        now="Use another lock provider in all writers of the table.",
        provider=provider,
        uri=storage.location.uri,
    )
