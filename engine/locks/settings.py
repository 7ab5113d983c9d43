"""The settings of locks: Hudi's own keys, and ours for what Hudi does not have."""

from lakewarden.engine.kernel.settings import Setting, whole_number

_PREFIX = "hoodie.write.lock."


def _text(key: str, description: str, default: str = "", *aliases: str) -> Setting[str]:
    return Setting(key, default, str.strip, description, aliases)


def _number(key: str, default: int, description: str, *aliases: str) -> Setting[int]:
    return Setting(key, default, whole_number, description, aliases)


def _interval(key: str, default: int, description: str, *aliases: str) -> Setting[int]:
    return Setting(key, default, _at_least_one, description, aliases)


def _at_least_one(text: str) -> int:
    number = whole_number(text)
    if number == 0:
        raise ValueError("it must be at least 1")
    return number


PROVIDER = _text(
    f"{_PREFIX}provider",
    "The lock that writers of this table share, as a class of Hudi or a short name; "
    "when not set, the one that suits the storage",
)
WAIT_MS = _number(f"{_PREFIX}wait_time_ms", 60_000, "How long to wait for a lock that is held")
RETRIES = _number(
    f"{_PREFIX}client.num_retries",
    50,
    "Accepted for Java, whose lock manager waits again; here wait_time_ms is all",
)
RETRY_PAUSE_MS = _number(
    f"{_PREFIX}client.wait_time_ms_between_retry",
    5_000,
    "Accepted for Java: the pause of its lock manager",
    f"{_PREFIX}client.retry_wait_time_ms",
)
PAUSE_MS = _number(
    f"{_PREFIX}wait_time_ms_between_retry",
    1_000,
    "The longest pause between two checks of a held lock; pauses start at milliseconds",
)
PAUSE_MAX_MS = _number(
    f"{_PREFIX}max_wait_time_ms_between_retry", 16_000, "A limit for the pause between two checks"
)
PROVIDER_RETRIES = _number(
    f"{_PREFIX}num_retries", 15, "Accepted for Java; here only times limit the wait"
)
HEARTBEAT_MS = _number(
    f"{_PREFIX}heartbeat_interval_ms", 60_000, "Accepted for Java; only Hive's lock uses it"
)
CONFLICT_STRATEGY = _text(
    f"{_PREFIX}conflict.resolution.strategy",
    (
        "How conflicting writes are detected, as a class of Hudi or a short name; when not set, "
        "the one that suits the index"
    ),
)

FILE_FOLDER = _text(
    f"{_PREFIX}filesystem.path",
    (
        "The folder of the lock file; all writers must use the same one; when not set, the "
        "table's folder .hoodie"
    ),
)
FILE_EXPIRE_MINUTES = _number(
    f"{_PREFIX}filesystem.expire",
    0,
    "After how many minutes without renewal any writer may remove any lock file; 0 is never",
)
EXPIRY_SECONDS = _interval(
    "lakewarden.lock.expiry_seconds",
    60,
    "After how many seconds without renewal a lock file of Lakewarden counts as left behind",
)

STORAGE_VALIDITY_SECONDS = _interval(
    f"{_PREFIX}storage.validity.timeout.secs",
    300,
    "How long a storage lock is valid without renewal",
    f"{_PREFIX}storage.validity.timeout",
)
STORAGE_RENEW_SECONDS = _interval(
    f"{_PREFIX}storage.renew.interval.secs",
    30,
    "How often a storage lock is renewed",
    f"{_PREFIX}storage.heartbeat.poll.secs",
)

ZOOKEEPER_URL = _text(f"{_PREFIX}zookeeper.url", "The ZooKeeper servers, as host:port,host:port")
ZOOKEEPER_BASE_PATH = _text(
    f"{_PREFIX}zookeeper.base_path", "The node below which the lock's node is"
)
ZOOKEEPER_LOCK_KEY = _text(
    f"{_PREFIX}zookeeper.lock_key", "The lock's node, usually the table's name"
)
ZOOKEEPER_SESSION_MS = _interval(
    f"{_PREFIX}zookeeper.session_timeout_ms",
    60_000,
    "How long ZooKeeper keeps the lock of a client that does not respond",
)
ZOOKEEPER_CONNECTION_MS = _interval(
    f"{_PREFIX}zookeeper.connection_timeout_ms", 15_000, "How long connecting to ZooKeeper may take"
)

LOCK_SETTINGS: tuple[Setting[object], ...] = (
    PROVIDER,
    WAIT_MS,
    RETRIES,
    RETRY_PAUSE_MS,
    PAUSE_MS,
    PAUSE_MAX_MS,
    PROVIDER_RETRIES,
    HEARTBEAT_MS,
    CONFLICT_STRATEGY,
    FILE_FOLDER,
    FILE_EXPIRE_MINUTES,
    EXPIRY_SECONDS,
    STORAGE_VALIDITY_SECONDS,
    STORAGE_RENEW_SECONDS,
    ZOOKEEPER_URL,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    ZOOKEEPER_SESSION_MS,
    ZOOKEEPER_CONNECTION_MS,
)
