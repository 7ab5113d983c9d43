"""Schema history: what a column was called in a file of an earlier time.

A table evolved with schema-on-read gives each column an id that outlives renames; the versions are
kept in `.hoodie/.schema`. Only top-level columns are followed; nested fields are found by name.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.timeline import Timeline

SCHEMA_FOLDER = ".hoodie/.schema"
COMPLETED_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The column names by id, from an instant on."""

    instant: str
    names: Mapping[int, str]
    # The whole of it, as Java keeps it.
    text: str = ""


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions, oldest first; empty when the table never evolved that way."""

    versions: tuple[SchemaVersion, ...] = ()
    # The file it stands in.
    path: str = ""

    def sources(self, written_at: str, read_at: str | None = None) -> dict[str, str | None]:
        """For each column as read now, its name in a file of `written_at`; None: not there yet.

        Columns that keep their name are skipped.
        """
        if not self.versions:
            return {}
        then, now = self._at(written_at), self._at(read_at)
        names = {now.names[id_]: then.names.get(id_) for id_ in now.names}
        return {name: source for name, source in names.items() if name != source}

    def until(self, instant: str | None) -> "SchemaHistory":
        """The versions that there were at an instant; files of later ones are read by no one."""
        if instant is None:
            return self
        position = bisect_right([version.instant for version in self.versions], instant)
        return replace(self, versions=self.versions[: max(position, 1)])

    def _at(self, instant: str | None) -> SchemaVersion:
        if instant is None:
            return self.versions[-1]
        position = bisect_right([version.instant for version in self.versions], instant)
        return self.versions[max(position - 1, 0)]


def load_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory:
    """The history that the newest completed write has left, or an empty one.

    A writer leaves it before it commits, and what was rolled back or restored leaves it behind.
    """
    files = {
        entry.name.partition(".")[0].partition("_")[0]: entry.path
        for entry in sorted(storage.list(SCHEMA_FOLDER).files, key=lambda entry: entry.name)
        if entry.name.endswith(COMPLETED_SUFFIX) and entry.size_bytes > 0
    }
    path = next((files[one] for one in sorted(files, reverse=True) if _counts(timeline, one)), None)
    return SchemaHistory() if path is None else parse_schema_history(storage.read(path), path)


def _counts(timeline: Timeline, instant: str) -> bool:
    """Whether the write of an instant has completed; the archive is asked about old ones only."""
    if any(one.is_completed and one.action.is_write for one in timeline.active.with_time(instant)):
        return True
    is_old = timeline.is_completed(instant)
    return is_old and timeline.archive.completion_time(instant) is not None


def parse_schema_history(payload: bytes, path: str) -> SchemaHistory:
    """The versions a schema commit holds."""
    try:
        document = json.loads(payload)
        versions = [
            SchemaVersion(
                # Version 0 is the schema before the first change.
                str(schema["version_id"]) if schema["version_id"] else "",
                {int(field["id"]): str(field["name"]) for field in schema["fields"]},
                json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
            )
            for schema in document["schemas"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, error) from None
    return SchemaHistory(tuple(sorted(versions, key=lambda version: version.instant)), path)


def _unreadable(path: str, error: Exception) -> CorruptTable:
    return corrupt(path, None, f"It is not a schema history: {type(error).__name__} {error}.")
