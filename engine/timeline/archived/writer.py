"""Writing the archived timeline: a new file, then a manifest, then `_version_`.

Each step leaves the old snapshot readable until the last one makes the new snapshot current, so a
crash anywhere leaves one of the two; what it leaves behind is overwritten or cleaned later. Writers
exclude each other by the table lock. In layout 1 each archival adds one log file, whole or not at
all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.kernel.errors import Defect
from lakewarden.engine.storage.port import Storage, Unknown, Won, unavailable
from lakewarden.engine.timeline.archived.manifest import (
    VERSION_FILE,
    LsmFile,
    ManifestSnapshot,
    decode_manifest,
    encode_manifest,
    load_manifest,
    manifest_path,
    manifest_versions,
    parse_file_name,
)
from lakewarden.engine.timeline.archived.rows import (
    ENTRIES_FILE,
    ArchivedInstant,
    encode_entries,
    encode_rows,
    read_rows,
    row_table,
)
from lakewarden.engine.timeline.instants.instant import Layout

HIGHEST_LEVEL = 9
_NUMBERS_TRIED = 100


@dataclass(frozen=True, slots=True)
class LsmLimits:
    """When files are merged, and how many old snapshots stay for readers."""

    batch_size: int = 10
    merged_size_bytes: int = 1024 * 1024 * 1000
    kept_snapshots: int = 3


def add_to_archive(
    storage: Storage, layout: Layout, rows: Sequence[ArchivedInstant], now_ms: int
) -> None:
    """Add instants to the archive that belongs to a layout."""
    folder = layout.history_folder
    if layout.version > 1:
        archive(storage, folder, rows)
        return
    ordered = sorted(rows, key=lambda row: row.instant.key)
    content = encode_entries(ordered)
    found = (ENTRIES_FILE.fullmatch(entry.name) for entry in storage.list(folder).files)
    number = max((int(match[1]) for match in found if match), default=0)
    # Of archivals that know nothing of each other, each makes a file of its own.
    for following in range(number + 1, number + 1 + _NUMBERS_TRIED):
        path = f"{folder}/.commits_.archive.{following}_1-0-1"
        match storage.create_dated(path, content, now_ms):
            case Won():
                return
            case Unknown(cause):
                raise unavailable("create", storage.uri(path), cause)
    raise unavailable("create", storage.uri(folder), "Other files take all numbers.")


def tidy_archive(storage: Storage, layout: Layout, limits: LsmLimits) -> None:
    """Merge small files of the archive and remove old ones; in layout 1 they stay as they are."""
    if layout.version > 1:
        compact_and_clean(storage, layout.history_folder, limits)


def archive(storage: Storage, folder: str, rows: Sequence[ArchivedInstant]) -> ManifestSnapshot:
    """Add instants to the archive as one file of level 0; the answer is the new snapshot.

    Steps of `archive-file`: file, manifest, version. No reader sees the file before the manifest
    names it, nor the manifest before `_version_` does. Doing it again with the same instants
    changes nothing.
    """
    if not rows:
        raise Defect(
            "empty_archival",
            what="Lakewarden was about to archive no instants.",
            why="A file of the archive has at least one.",
        )
    ordered = sorted(rows, key=lambda row: row.instant.key)
    first, last = ordered[0].instant.requested, ordered[-1].instant.requested
    current = load_manifest(storage, folder)
    if any(file.name == LsmFile(first, last, 0).name for file in current.files):
        return current
    file = _write_file(storage, folder, LsmFile(first, last, 0), row_table(ordered))
    return _write_snapshot(storage, folder, current, (*current.files, file))


def compact_and_clean(storage: Storage, folder: str, limits: LsmLimits) -> ManifestSnapshot:
    """Merge the files of every level that has enough of them, then remove what is outdated."""
    level = 0
    while level < HIGHEST_LEVEL and _compact_level(storage, folder, level, limits):
        level += 1
    # Each merge makes a snapshot of its own; readers of the one before them all must be able to
    # finish.
    clean(storage, folder, limits.kept_snapshots + level)
    return load_manifest(storage, folder)


def levels_to_merge(files: Sequence[LsmFile], limits: LsmLimits) -> tuple[tuple[LsmFile, ...], ...]:
    """The files that would be merged, level by level, without merging them."""
    found: list[tuple[LsmFile, ...]] = []
    there = list(files)
    for level in range(HIGHEST_LEVEL):
        inputs = files_to_merge(there, level, limits)
        if len(inputs) < 2:
            break
        found.append(inputs)
        there = [file for file in there if file not in inputs] + [_merged(inputs)]
    return tuple(found)


def clean(storage: Storage, folder: str, kept_snapshots: int) -> int:
    """Remove old manifests and the files only they name; the number of files removed.

    Manifests go first: a manifest must never name a file that is gone.
    """
    versions = manifest_versions(storage, folder)
    kept, outdated = versions[-kept_snapshots:], versions[:-kept_snapshots]
    if not outdated:
        return 0
    named = {file.name for version in kept for file in _files_at(storage, folder, version)}
    removed = [manifest_path(folder, version) for version in outdated]
    for entry in storage.list(folder).files:
        file = parse_file_name(entry.name, entry.size_bytes)
        if file is not None and file.name not in named:
            removed.append(entry.path)
    return sum(storage.delete(path) for path in removed)


def _compact_level(storage: Storage, folder: str, level: int, limits: LsmLimits) -> bool:
    current = load_manifest(storage, folder)
    inputs = files_to_merge(current.files, level, limits)
    if len(inputs) < 2:
        return False
    table = pa.concat_tables(_read_file(storage, folder, file) for file in inputs)
    merged = _write_file(storage, folder, _merged(inputs), table.sort_by("instantTime"))
    remaining = tuple(file for file in current.files if file not in inputs)
    _write_snapshot(storage, folder, current, (*remaining, merged))
    return True


def files_to_merge(files: Sequence[LsmFile], level: int, limits: LsmLimits) -> tuple[LsmFile, ...]:
    """The oldest neighbouring files of a level that together stay near the size limit."""
    candidates = sorted(file for file in files if file.level == level)
    if len(candidates) < limits.batch_size:
        return ()
    chosen: list[LsmFile] = []
    for file in candidates:
        chosen.append(file)
        if len(chosen) == limits.batch_size:
            break
        if sum(each.size_bytes for each in chosen) > limits.merged_size_bytes:
            if len(chosen) > 1:
                break
            # A file of that size alone is not worth rewriting; begin after it.
            chosen.clear()
    return tuple(chosen)


def _merged(inputs: Sequence[LsmFile]) -> LsmFile:
    """What the file is called that stands for others; it is about as large as they are."""
    first, last = min(file.first for file in inputs), max(file.last for file in inputs)
    size_bytes = sum(file.size_bytes for file in inputs)
    return LsmFile(first, last, inputs[0].level + 1, size_bytes)


def _write_file(storage: Storage, folder: str, file: LsmFile, table: pa.Table) -> LsmFile:
    content = encode_rows(table)
    storage.put(f"{folder}/{file.name}", content)
    return LsmFile(file.first, file.last, file.level, len(content))


def _read_file(storage: Storage, folder: str, file: LsmFile) -> pa.Table:
    path = f"{folder}/{file.name}"
    with storage.open(path) as source:
        return read_rows(source, path)


def _write_snapshot(
    storage: Storage, folder: str, current: ManifestSnapshot, files: tuple[LsmFile, ...]
) -> ManifestSnapshot:
    following = ManifestSnapshot(current.version + 1, tuple(sorted(files)))
    storage.put(manifest_path(folder, following.version), encode_manifest(following.files))
    storage.put(f"{folder}/{VERSION_FILE}", str(following.version).encode())
    return following


def _files_at(storage: Storage, folder: str, version: int) -> tuple[LsmFile, ...]:
    path = manifest_path(folder, version)
    return decode_manifest(storage.read(path), path)
