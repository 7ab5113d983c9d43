"""The `files` partition: which partitions and files a table has, without listing anything."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import DataFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.listing import PartitionFiles
from lakewarden.engine.metadata.encoding.records import Versions, text_keys
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.storage.paths import check_data_file, check_name, check_partition
from lakewarden.engine.table.config import METADATA_FOLDER

ALL_PARTITIONS_KEY = "__all_partitions__"
# A table without partitions is listed under this name.
NO_PARTITION_NAME = "."
FILES_COLUMN = "filesystemMetadata"

# What names say is kept: each write and each read lists partitions of many files.
_PARSED_MAX = 1 << 13
_SAID_BY = f"{METADATA_FOLDER}/files"


class MetadataListing:
    """A file source that asks the metadata table."""

    def __init__(self, partition: MetadataPartition) -> None:
        self._partition = partition

    def partitions(self) -> tuple[str, ...]:
        versions = self._partition.lookup([ALL_PARTITIONS_KEY], [FILES_COLUMN])
        listed = merged_sizes(versions).get(ALL_PARTITIONS_KEY, {})
        return tuple(sorted(_path(name) for name in listed))

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        if partitions is None:
            merged = merged_sizes(self._partition.all([FILES_COLUMN]))
            wanted = sorted(_path(name) for name in merged.get(ALL_PARTITIONS_KEY, {}))
        else:
            wanted = list(partitions)
            names = [_name(path) for path in wanted]
            merged = merged_sizes(self._partition.lookup(names, [FILES_COLUMN]))
        return {path: _data_files(merged.get(_name(path), {})) for path in wanted}


def merged_sizes(versions: Versions) -> dict[str, dict[str, int]]:
    """The live names with their sizes, by key; later versions add, grow and remove."""
    changes, _ = merged_changes(versions)
    return {
        key: {name: size for name, size in sizes.items() if size is not None}
        for key, sizes in changes.items()
    }


def merged_changes(versions: Versions) -> tuple[dict[str, dict[str, int | None]], set[str]]:
    """What versions say of each key: names with their sizes, None for those that are gone.

    The other answer is the keys of which nothing counts that was known before.
    """
    column = versions.values.column(FILES_COLUMN).combine_chunks()
    if pa.types.is_null(column.type):
        return {}, set(text_keys(versions.keys))
    offsets = np.asarray(column.offsets).tolist()
    names = column.keys.to_pylist()
    sizes = column.items.field("size").to_pylist()
    removed = column.items.field("isDeleted").to_pylist()
    merged: dict[str, dict[str, int | None]] = {}
    wiped: set[str] = set()
    for number, key in enumerate(text_keys(versions.keys)):
        if versions.is_removed[number]:
            merged.pop(key, None)
            wiped.add(key)
            continue
        known = merged.setdefault(key, {})
        for at in range(offsets[number], offsets[number + 1]):
            name = names[at]
            known[name] = None if removed[at] else max(sizes[at], known.get(name) or 0)
    return merged, wiped


def _data_files(sizes: dict[str, int]) -> tuple[DataFile, ...]:
    parsed = (_data_file(name, sizes[name]) for name in sorted(sizes))
    return tuple(file for file in parsed if file is not None)


@lru_cache(maxsize=_PARSED_MAX)
def _data_file(name: str, size_bytes: int) -> DataFile | None:
    """A listed file as a data file, a log with its recorded size; None for any other file."""
    file = parse_file_name(name, size_bytes)
    if file is None:
        check_name(name, _SAID_BY)
        return None
    check_data_file(name, _SAID_BY)
    return replace(file, recorded_bytes=size_bytes) if isinstance(file, LogFile) else file


def _path(name: str) -> str:
    if name == NO_PARTITION_NAME:
        return ""
    check_partition(name, _SAID_BY)
    return name


def _name(path: str) -> str:
    return path or NO_PARTITION_NAME
