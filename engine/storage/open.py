"""Opening a storage: which adapter serves an address."""

from weakref import WeakKeyDictionary

from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import SCHEME, open_memory_storage
from lakewarden.engine.storage.object_store import ConditionalRequests, ObjectStorage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.storage.protocols import connect, scheme_of

_PROVEN: WeakKeyDictionary[object, tuple[ConditionalRequests, ConditionalRequests]] = (
    WeakKeyDictionary()
)


def open_storage(location: Location) -> Storage:
    """The storage at a location; `InvalidRequest` for an address or options it cannot use."""
    scheme = scheme_of(location.uri)
    if scheme in (None, "file"):
        return LocalStorage(location)
    if location.uri.startswith(SCHEME):
        return open_memory_storage(location)
    connection = connect(location)
    creates, replaces = _conditions_of(connection.filesystem)
    return ObjectStorage(location, connection, creates, replaces)


def _conditions_of(filesystem: object) -> tuple[ConditionalRequests, ConditionalRequests]:
    """What is proven of a connection to a service, which many tables may share."""
    if filesystem not in _PROVEN:
        _PROVEN[filesystem] = ConditionalRequests(), ConditionalRequests()
    return _PROVEN[filesystem]
