"""The archived timeline of versions 8 and 9: completed instants in a tree of Parquet files.

Only the files whose names say that they overlap what is asked for are read, and of those only the
columns needed. What has been read of a file is kept, as a file never changes.
"""

from collections.abc import Collection, Iterator

from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.manifest import LsmFile, ManifestSnapshot, load_manifest
from lakewarden.engine.timeline.archived.rows import (
    TIME_COLUMNS,
    ArchivedInstant,
    archived_instants,
    instants,
    read_rows,
)
from lakewarden.engine.timeline.instants.instant import Action, Instant

# How far the clocks and zones of writers and of their storage may be apart, at most.
_CLOCKS_APART_MS = 26 * 3_600_000


class LsmArchive:
    """One snapshot of the archive in a folder, taken when it is first asked."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._instants: dict[str, tuple[Instant, ...]] = {}

    @lazy
    def snapshot(self) -> ManifestSnapshot:
        return load_manifest(self._storage, self._folder)

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
            for row in self._rows_in(file, instant.requested, instant.requested):
                if row.instant.key == instant.key:
                    return row
        return None

    def completed_after(self, time: str, moment_ms: int | None) -> tuple[Instant, ...]:
        """The instants completed after a time, which is that moment, in the order they began.

        A file is written after all that is in it has completed, so those that were there long
        before the moment need not be read; without a moment all are.
        """
        oldest_ms = 0 if moment_ms is None else moment_ms - _CLOCKS_APART_MS
        listed = self._storage.list(self._folder).files
        recent = {entry.name for entry in listed if entry.modified_ms >= oldest_ms}
        if not recent:
            return ()
        found = {
            instant.key: instant
            for file in self.snapshot.files
            if file.name in recent
            for instant in self._instants_in(file)
            if instant.completed is not None and instant.completed > time
        }
        return tuple(found[key] for key in sorted(found))

    def rows(
        self, actions: Collection[Action], since: str | None = None, until: str | None = None
    ) -> Iterator[ArchivedInstant]:
        """Instants of some actions with their contents, newest first; each file is read once.

        Only files that have such instants are read, and those only as far as they are asked for.
        """
        wanted = {one for one in self.instants(since, until) if one.action in actions}
        read: dict[str, dict[tuple[str, str], ArchivedInstant]] = {}
        for instant in sorted(wanted, reverse=True):
            for file in self.snapshot.files:
                if instant not in self._instants_in_range(file, instant):
                    continue
                if file.name not in read:
                    rows = self._rows_in(file, since, until)
                    read[file.name] = {row.instant.key: row for row in rows}
                yield read[file.name][instant.key]
                break

    def _instants_in_range(self, file: LsmFile, instant: Instant) -> tuple[Instant, ...]:
        is_near = file.overlaps(instant.requested, instant.requested)
        return self._instants_in(file) if is_near else ()

    def _instants_in(self, file: LsmFile) -> tuple[Instant, ...]:
        if file.name not in self._instants:
            path = f"{self._folder}/{file.name}"
            with self._storage.open(path) as source:
                self._instants[file.name] = instants(read_rows(source, path, TIME_COLUMNS), path)
        return self._instants[file.name]

    def _rows_in(
        self, file: LsmFile, since: str | None, until: str | None
    ) -> tuple[ArchivedInstant, ...]:
        path = f"{self._folder}/{file.name}"
        with self._storage.open(path) as source:
            table = read_rows(source, path, since=since, until=until)
        return archived_instants(table, path)
