"""Manifests of the archived timeline: which files make up a snapshot of it.

A snapshot is the file `manifest_<n>`; `_version_` names the current one. A writer makes the next
manifest first and moves `_version_` then, so that a reader finds an old snapshot or a new one.
"""

import re
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.formats.json_text import parse_json
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage

VERSION_FILE = "_version_"

_DIGITS_MAX = 18
# Every whole manifest is one object with one list, so that no part of it ends like this.
_ENDING = re.compile(rb"\]\s*\}\s*\Z")
_MANIFEST_NAME = re.compile(rf"manifest_([0-9]{{1,{_DIGITS_MAX}}})")
_FILE_NAME = re.compile(r"([0-9]+)_([0-9]+)_([0-9])\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class LsmFile:
    """A file of archived instants: the first and last of them, and its level in the tree."""

    first: str
    last: str
    level: int
    size_bytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.first}_{self.last}_{self.level}.parquet"

    def overlaps(self, since: str | None, until: str | None) -> bool:
        """Whether it may hold instants from `since` to `until`, both included."""
        return (since is None or self.last >= since) and (until is None or self.first <= until)


@dataclass(frozen=True, slots=True)
class ManifestSnapshot:
    """The files of the archived timeline at one version; version 0 stands for no archive yet."""

    version: int
    files: tuple[LsmFile, ...] = ()


@dataclass(frozen=True, slots=True)
class _FileEntry:
    file_name: str
    file_len: int


@dataclass(frozen=True, slots=True)
class _Manifest:
    files: tuple[_FileEntry, ...]


def load_manifest(storage: Storage, folder: str) -> ManifestSnapshot:
    """The current snapshot of the archive in a folder."""
    content = storage.read_if_present(f"{folder}/{VERSION_FILE}") or b""
    version = int(content) if content.isdigit() and len(content) <= _DIGITS_MAX else 0
    path = manifest_path(folder, version)
    manifest = storage.read_if_present(path) if version else None
    if manifest is None:
        return _newest_snapshot(storage, folder)
    return ManifestSnapshot(version, decode_manifest(manifest, path))


def _newest_snapshot(storage: Storage, folder: str) -> ManifestSnapshot:
    """The snapshot of the newest manifest: the current one where no `_version_` says so.

    Java replaces `_version_` by deleting and creating it, and may die in between. A manifest that
    was cut short never was the current one: its maker died before it came to `_version_`.
    """
    for version in reversed(manifest_versions(storage, folder)):
        path = manifest_path(folder, version)
        manifest = storage.read(path)
        if _ENDING.search(manifest):
            return ManifestSnapshot(version, decode_manifest(manifest, path))
    return ManifestSnapshot(0)


def manifest_path(folder: str, version: int) -> str:
    return f"{folder}/manifest_{version}"


def manifest_versions(storage: Storage, folder: str) -> tuple[int, ...]:
    """The versions whose manifests are there, oldest first."""
    matches = (_MANIFEST_NAME.fullmatch(entry.name) for entry in storage.list(folder).files)
    return tuple(sorted(int(match[1]) for match in matches if match))


def parse_file_name(name: str, size_bytes: int) -> LsmFile | None:
    """The archive file a name stands for; None for other files."""
    match = _FILE_NAME.fullmatch(name)
    return LsmFile(match[1], match[2], int(match[3]), size_bytes) if match else None


def decode_manifest(payload: bytes, path: str) -> tuple[LsmFile, ...]:
    """The files that a manifest names."""
    manifest = value_of(_Manifest, parse_json(payload, path), path)
    files = []
    for entry in manifest.files:
        file = parse_file_name(entry.file_name, entry.file_len)
        if file is None:
            reason = f"It names {entry.file_name!r:.60}, which is not a file of an archive."
            raise corrupt(path, None, reason)
        files.append(file)
    return tuple(files)


def encode_manifest(files: tuple[LsmFile, ...]) -> bytes:
    """A manifest to the letter as Java writes it."""
    entries = ", ".join(
        f'{{\n    "fileName" : "{file.name}",\n    "fileLen" : {file.size_bytes}\n  }}'
        for file in files
    )
    listed = f"[ {entries} ]" if entries else "[ ]"
    return f'{{\n  "files" : {listed}\n}}'.encode()
