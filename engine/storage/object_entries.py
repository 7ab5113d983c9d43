"""Entries of an object store: what the many dialects of fsspec's file details say alike."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from lakewarden.engine.storage.port import Entry

Details = Mapping[str, object]

_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


def relative_files(details: Iterable[Details], root: str) -> list[Entry]:
    """The files among the details, named as below the root.

    What ends in `/` is a marker that some tools write in place of a folder.
    """
    prefix = f"{root}/"
    return [
        Entry(_name(one).removeprefix(prefix), _size_bytes(one), modified_ms(one))
        for one in details
        if one["type"] == "file" and _is_below(one, prefix) and not _name(one).endswith("/")
    ]


def relative_folders(details: Iterable[Details], root: str) -> list[str]:
    """The folders among the details, named as below the root."""
    prefix = f"{root}/"
    return [
        _name(one).removeprefix(prefix).rstrip("/")
        for one in details
        if one["type"] == "directory" and _is_below(one, prefix)
    ]


def modified_ms(details: Details) -> int:
    """The time of the last change, or 0 for a store that keeps none."""
    for key in _TIMES:
        time = details.get(key)
        if isinstance(time, str):
            time = datetime.fromisoformat(time)
        if isinstance(time, datetime):
            return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(time, int | float):
            return int(time * 1000)
    return 0


def _name(details: Details) -> str:
    return str(details["name"])


def _size_bytes(details: Details) -> int:
    size = details["size"]
    return size if isinstance(size, int) else 0


def _is_below(details: Details, prefix: str) -> bool:
    return _name(details).startswith(prefix) and _name(details).rstrip("/") != prefix[:-1]
