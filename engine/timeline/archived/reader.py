"""The archived timeline of versions 8 and 9: completed instants in a tree of Parquet files.

Only the files whose names say that they overlap what is asked for are read, and of those only the
columns needed. What has been read of a file is kept, as a file never changes.
"""

from functools import cached_property

from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.manifest import LsmFile, Snapshot, load_snapshot
from lakewarden.engine.timeline.archived.rows import (
    TIME_COLUMNS,
    ArchivedInstant,
    archived_instants,
    instants,
    read_rows,
)
from lakewarden.engine.timeline.instant import Action, Instant


class LsmArchive:
    """One snapshot of the archive in a folder, taken when it is first asked."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._instants: dict[str, tuple[Instant, ...]] = {}

    @cached_property
    def snapshot(self) -> Snapshot:
        return load_snapshot(self._storage, self._folder)

    def instants(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """The instants requested from `since` to `until`, both included, in their order."""
        found = {
            instant.key: instant
            for file in self.snapshot.files
            if file.overlaps(since, until)
            for instant in self._instants_in(file)
            if (since is None or instant.requested >= since)
            and (until is None or instant.requested <= until)
        }
        return tuple(found[key] for key in sorted(found))

    def completion_time(self, requested: str) -> str | None:
        """When an archived instant completed; None when it is not in the archive."""
        for instant in self.instants(requested, requested):
            if instant.action is not Action.SAVEPOINT:
                return instant.completed
        return None

    def read(self, instant: Instant) -> ArchivedInstant | None:
        """An instant with its contents; None when it is not in the archive."""
        for file in self.snapshot.files:
            if not file.overlaps(instant.requested, instant.requested):
                continue
            for row in self._rows_in(file, instant.requested):
                if row.instant.key == instant.key:
                    return row
        return None

    def _instants_in(self, file: LsmFile) -> tuple[Instant, ...]:
        if file.name not in self._instants:
            path = f"{self._folder}/{file.name}"
            with self._storage.open(path) as source:
                self._instants[file.name] = instants(read_rows(source, path, TIME_COLUMNS), path)
        return self._instants[file.name]

    def _rows_in(self, file: LsmFile, requested: str) -> tuple[ArchivedInstant, ...]:
        path = f"{self._folder}/{file.name}"
        with self._storage.open(path) as source:
            table = read_rows(source, path, since=requested, until=requested)
        return archived_instants(table, path)
