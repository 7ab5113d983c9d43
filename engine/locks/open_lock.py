"""Opening a table's lock: which provider the settings name, or which suits the storage."""

from collections.abc import Callable
from functools import partial

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Origin, Settings
from lakewarden.engine.locks.providers.file_system import Expiry, FileSystemLock
from lakewarden.engine.locks.providers.in_process import InProcessLock
from lakewarden.engine.locks.providers.port import LockProvider
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
from lakewarden.engine.locks.table_lock import Patience, TableLock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.storage.protocols import scheme_of
from lakewarden.engine.table.config import PROPERTIES_PATH

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
