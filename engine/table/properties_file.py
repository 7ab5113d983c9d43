"""The properties file: created once, changed so that a crash at any moment leaves a good copy."""

from collections.abc import Mapping

from lakewarden.engine.formats.properties import (
    CHECKSUM_KEY,
    format_properties,
    parse_properties,
    table_checksum,
    verify_checksum,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, Unsettled
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.table.config import BACKUP_PATH, PROPERTIES_PATH, is_whole

_CREATED = "Properties saved by Lakewarden"
_UPDATED = "Updated by Lakewarden"


def write_properties(storage: Storage, properties: Mapping[str, str]) -> None:
    """Create the file, with its checksum; doing it again with the same properties is no error."""
    match storage.create_exclusive(PROPERTIES_PATH, _file_of(properties, _CREATED)):
        case Won():
            return
        case Lost(content):
            # A file that a crash cut short is no table yet, and may be completed.
            if not _file_of(properties, _CREATED).startswith(content):
                raise _table_exists(storage)
            if not is_whole(content):
                storage.put(PROPERTIES_PATH, _file_of(properties, _CREATED))
        case Unknown(cause):
            raise Unsettled(
                "creation_unsettled",
                what=f"It is not known whether {PROPERTIES_PATH} was created.",
                why=cause,
                now="Create the table again with the same properties; that is safe.",
                path=PROPERTIES_PATH,
            )


def update_properties(storage: Storage, changes: Mapping[str, str | None]) -> Mapping[str, str]:
    """Set properties, or remove those that are changed to None; the answer is all of them after.

    The caller holds the table's lock. Steps of `properties`: recover, backup, replace, forget. Each
    of them leaves a whole file behind.
    """
    current = _recover(storage)
    kept = {key: value for key, value in current.items() if key not in changes}
    after = kept | {key: value for key, value in changes.items() if value is not None}
    if after != current:
        storage.put(BACKUP_PATH, _file_of(current, _UPDATED))
        storage.put(PROPERTIES_PATH, _file_of(after, _UPDATED))
    storage.delete(BACKUP_PATH)
    return after


def _recover(storage: Storage) -> Mapping[str, str]:
    """The properties, after a backup has replaced a file that is damaged or not there."""
    payload = storage.read_if_present(PROPERTIES_PATH)
    if not is_whole(payload):
        backup = storage.read_if_present(BACKUP_PATH)
        if backup is not None and is_whole(backup):
            storage.put(PROPERTIES_PATH, backup)
            payload = backup
    if not payload:
        raise _no_properties()
    properties = parse_properties(payload, PROPERTIES_PATH)
    verify_checksum(properties, PROPERTIES_PATH)
    return properties


def _file_of(properties: Mapping[str, str], comment: str) -> bytes:
    names = (properties.get("hoodie.database.name", ""), properties.get("hoodie.table.name", ""))
    lines = {key: properties[key] for key in sorted(properties) if key != CHECKSUM_KEY}
    # The checksum stands last, so that a file that was cut lacks it.
    lines[CHECKSUM_KEY] = str(table_checksum(*names))
    return format_properties(lines, comment)


def _table_exists(storage: Storage) -> InvalidRequest:
    return InvalidRequest(
        "table_exists",
        what=f"A table already exists at {storage.location.uri}.",
        why=f"Its {PROPERTIES_PATH} says something else.",
        now="Choose another path, or open the existing table.",
        path=storage.location.uri,
    )


def _no_properties() -> CorruptTable:
    return CorruptTable(
        "missing_properties",
        what=f"{PROPERTIES_PATH} is missing or empty, and has no backup.",
        why="Another process removed it.",
        now="Restore the file from a copy.",
        path=PROPERTIES_PATH,
    )
