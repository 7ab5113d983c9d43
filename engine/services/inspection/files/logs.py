"""Logs: which files a pattern means, what their blocks are, and which records they hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import LogFile, log_order, parse_file_name
from lakewarden.engine.file_groups.listing import HOODIE_FOLDER
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.hfile.reader import HFile
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import range_source, read_blocks, records
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Entry, Storage

_WILD = frozenset("*?[")
_WITH_TABLES = (BlockKind.AVRO, BlockKind.PARQUET, BlockKind.CDC)


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A log file, and the partition in which it lies."""

    partition: str
    file: LogFile
    path: str


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A block of a log, and how many records it holds; corrupt and command blocks hold none."""

    path: str
    block: Block
    record_count: int


def matching_logs(storage: Storage, pattern: str) -> tuple[FoundLog, ...]:
    """The logs of a table that a shell pattern means, in the order in which they are read.

    The pattern is a path below the table, or a full address that begins with that of the table.
    """
    relative = _relative(storage, pattern)
    fixed = relative.split("/")
    while fixed and _WILD & set("/".join(fixed)):
        fixed.pop()
    found = []
    for entry in _entries(storage, "/".join(fixed)):
        file = parse_file_name(entry.name, entry.size_bytes)
        if isinstance(file, LogFile) and fnmatchcase(entry.path, relative):
            found.append(FoundLog(entry.path.rpartition("/")[0], file, entry.path))
    return tuple(
        sorted(found, key=lambda one: (one.partition, one.file.file_id, log_order(one.file)))
    )


def blocks_of(storage: Storage, logs: tuple[FoundLog, ...]) -> Iterator[FoundBlock]:
    """The blocks of logs, those that no reader understands among them."""
    for log in logs:
        for block in read_blocks(storage.read(log.path), log.path):
            yield FoundBlock(log.path, block, _count(block))


def records_of(storage: Storage, logs: tuple[FoundLog, ...]) -> Iterator[pa.Table]:
    """The records of each data block, as they stand; a corrupt block is an error."""
    for log in logs:
        for block in read_blocks(storage.read(log.path), log.path):
            if block.kind is BlockKind.CORRUPT:
                raise block.corrupt(block.reason)
            if block.kind in _WITH_TABLES:
                yield records(block)


def merged_records(state: Snapshot, logs: tuple[FoundLog, ...]) -> Iterator[pa.Table]:
    """What the logs of each file group come to once they are merged, without its base file."""
    reader = SliceReader(state.storage, read_spec(state, Query(), None))
    groups: dict[FileGroupId, list[LogFile]] = {}
    for log in logs:
        groups.setdefault(FileGroupId(log.partition, log.file.file_id), []).append(log.file)
    for key, files in groups.items():
        slice_ = FileSlice(key.partition, key.file_id, files[0].instant, log_files=tuple(files))
        yield reader.table(slice_)


def _entries(storage: Storage, fixed: str) -> tuple[Entry, ...]:
    """The files that may match a pattern, of which a part is fixed."""
    exact = storage.stat(fixed) if fixed else None
    if exact is not None:
        return (exact,)
    if fixed:
        return storage.walk(fixed)
    top = storage.list("")
    folders = (one for one in top.folders if one.rstrip("/") != HOODIE_FOLDER)
    return (*top.files, *(entry for folder in folders for entry in storage.walk(folder)))


def _relative(storage: Storage, pattern: str) -> str:
    root = storage.uri("").rstrip("/")
    plain = pattern.removeprefix("file://") if root.startswith("/") else pattern
    relative = plain.removeprefix(root).lstrip("/") if plain.startswith(f"{root}/") else plain
    if relative.startswith("/") or "://" in relative or ".." in relative.split("/"):
        raise InvalidRequest(
            "path_outside_table",
            what=f"{pattern!r} is not in the table.",
            why=f"The table is at {root}.",
            now="Give a path below it, such as 'city=Oslo/*.log.*'.",
            path=pattern,
        )
    return relative


def _count(block: Block) -> int:
    if block.kind in _WITH_TABLES:
        return len(records(block))
    if block.kind is BlockKind.DELETE:
        return len(deletes(block).keys)
    if block.kind is BlockKind.HFILE:
        return HFile(range_source(block), block.path).entry_count
    return 0
