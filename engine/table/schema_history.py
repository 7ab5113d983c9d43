"""Schema history: what a column was called in a file of an earlier time.

A table evolved with schema-on-read gives each column an id that outlives renames; the versions are
kept in `.hoodie/.schema`. Only top-level columns are followed; nested fields are found by name.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.storage.port import Storage

SCHEMA_FOLDER = ".hoodie/.schema"
_COMPLETED_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The column names by id, from an instant on."""

    instant: str
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions, oldest first; empty when the table never evolved that way."""

    versions: tuple[SchemaVersion, ...] = ()

    def sources(self, written_at: str, read_at: str | None = None) -> dict[str, str | None]:
        """For each column as read now, its name in a file of `written_at`; None: not there yet.

        Columns that keep their name are left out.
        """
        if not self.versions:
            return {}
        then, now = self._at(written_at), self._at(read_at)
        names = {now.names[id_]: then.names.get(id_) for id_ in now.names}
        return {name: source for name, source in names.items() if name != source}

    def _at(self, instant: str | None) -> SchemaVersion:
        if instant is None:
            return self.versions[-1]
        position = bisect_right([version.instant for version in self.versions], instant)
        return self.versions[max(position - 1, 0)]


def load_schema_history(storage: Storage) -> SchemaHistory:
    """The history of the newest completed schema commit, or an empty one."""
    completed = sorted(
        entry.path
        for entry in storage.list(SCHEMA_FOLDER).files
        if entry.name.endswith(_COMPLETED_SUFFIX) and entry.size_bytes > 0
    )
    if not completed:
        return SchemaHistory()
    return parse_schema_history(storage.read(completed[-1]), completed[-1])


def parse_schema_history(payload: bytes, path: str) -> SchemaHistory:
    """The versions a schema commit holds."""
    try:
        document = json.loads(payload)
        versions = [
            SchemaVersion(
                # Version 0 is the schema before the first change.
                str(schema["version_id"]) if schema["version_id"] else "",
                {int(field["id"]): str(field["name"]) for field in schema["fields"]},
            )
            for schema in document["schemas"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, error) from None
    return SchemaHistory(tuple(sorted(versions, key=lambda version: version.instant)))


def _unreadable(path: str, error: Exception) -> CorruptTable:
    return corrupt(path, None, f"It is no schema history: {type(error).__name__} {error}.")
