"""Listings in one order: whatever a store's order or repetition, the engine sees sorted entries.

A store may show a file twice when it is replaced while being listed; the later one counts.
"""

from collections.abc import Iterable

from lakewarden.engine.storage.port import Entry, Listing


def ordered(files: Iterable[Entry]) -> tuple[Entry, ...]:
    """Each path once, sorted."""
    latest: dict[str, Entry] = {}
    for entry in files:
        known = latest.get(entry.path)
        if known is None or _age(known) < _age(entry):
            latest[entry.path] = entry
    return tuple(latest[path] for path in sorted(latest))


def listing(files: Iterable[Entry], folders: Iterable[str]) -> Listing:
    """The children of one folder, each once, sorted."""
    return Listing(ordered(files), tuple(sorted(set(folders))))


def _age(entry: Entry) -> tuple[int, int]:
    return entry.modified_ms, entry.size_bytes
