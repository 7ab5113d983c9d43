"""Listing: the partitions and files of a table as the storage itself shows them."""

from collections.abc import Sequence
from typing import Protocol

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA, DataFile, parse_file_name
from lakewarden.engine.storage.port import Entry, Storage

HOODIE_FOLDER = ".hoodie"

PartitionFiles = dict[str, tuple[DataFile, ...]]


class FileSource(Protocol):
    """Where partitions and files come from: the metadata table, or a listing."""

    def partitions(self) -> tuple[str, ...]:
        """All partition paths, sorted; "" is the only one of a table without partitions."""
        ...

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        """The data files of the given partitions, of all without an argument."""
        ...


class StorageListing:
    """Files by listing. A folder is a partition when it holds Hudi's partition metadata file."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self._walk()))

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        if partitions is None:
            folders = self._walk()
            return {folder: data_files(folders[folder]) for folder in sorted(folders)}
        return {folder: data_files(self._storage.list(folder).files) for folder in partitions}

    def foreign(self, partitions: Sequence[str] | None = None) -> tuple[str, ...]:
        """The paths of files in partitions that are none of the table's, but for hidden ones."""
        chosen = self.partitions() if partitions is None else partitions
        found = (entry for folder in chosen for entry in self._storage.list(folder).files)
        return tuple(
            entry.path
            for entry in found
            if not entry.name.startswith(".") and parse_file_name(entry.name, 0) is None
        )

    def _walk(self) -> dict[str, list[Entry]]:
        top = self._storage.list("")
        folders: dict[str, list[Entry]] = {"": list(top.files)}
        for folder in top.folders:
            if folder.rstrip("/") == HOODIE_FOLDER:
                continue
            for entry in self._storage.walk(folder):
                folders.setdefault(entry.path.rpartition("/")[0], []).append(entry)
        return {folder: files for folder, files in folders.items() if _is_partition(files)}


def data_files(entries: Sequence[Entry]) -> tuple[DataFile, ...]:
    """The data files among the files of a folder."""
    parsed = (parse_file_name(entry.name, entry.size_bytes) for entry in entries)
    return tuple(file for file in parsed if file is not None)


def _is_partition(entries: Sequence[Entry]) -> bool:
    return any(entry.name.startswith(PARTITION_METADATA) for entry in entries)
