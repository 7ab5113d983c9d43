"""Opening a storage: which adapter serves an address."""

from lakewarden.engine.storage.conditional import ConditionalRequests
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.memory import SCHEME, open_memory_storage
from lakewarden.engine.storage.object_store import ObjectStorage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.storage.protocols import connect, scheme_of


def open_storage(location: Location) -> Storage:
    """The storage at a location; `InvalidRequest` for an address or options it cannot use."""
    scheme = scheme_of(location.uri)
    if scheme in (None, "file"):
        return LocalStorage(location)
    if location.uri.startswith(SCHEME):
        return open_memory_storage(location)
    return ObjectStorage(location, connect(location), ConditionalRequests(), ConditionalRequests())
