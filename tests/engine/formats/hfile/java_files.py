"""HFiles by Java: base files and log blocks of golden metadata tables, and loose files of HBase."""

import zipfile
from collections.abc import Iterator
from functools import cache

from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks
from tests.golden_tables import GOLDEN_TABLES, SHARED_FOLDER, archive_of

# Files of HBase with many blocks, several levels, repeated keys. They come with the tables of the
# Rust implementation, so they are used only where its folder is.
LOOSE_FILES = tuple(sorted((SHARED_FOLDER / "hfile").glob("*.hfile")))

_NATIVE = b"\0\0\0\3"


@cache
def tables_with_base_files() -> tuple[str, ...]:
    """Golden tables whose metadata table has base files."""
    return tuple(name for name in GOLDEN_TABLES if any(_members(name, ".hfile")))


def base_files(table: str) -> dict[str, bytes]:
    """The HFiles of a table by path."""
    with zipfile.ZipFile(archive_of(table)) as archive:
        return {name: archive.read(name) for name in _members(table, ".hfile")}


def log_files(table: str) -> dict[str, bytes]:
    """The HFiles inside the log files of a table's metadata table, by path and offset."""
    found = {}
    with zipfile.ZipFile(archive_of(table)) as archive:
        for name in _members(table, ".log."):
            for block in read_blocks(archive.read(name), name):
                if block.kind is BlockKind.HFILE:
                    found[f"{name}:{block.offset}"] = bytes(block.content)
    return found


def one_base_file(table: str, partition: str) -> bytes:
    """The first base file of a partition of a golden metadata table."""
    files = base_files(table)
    return files[min(name for name in files if f"/{partition}/" in name)]


def is_native(file: bytes) -> bool:
    """Whether Hudi's own writer wrote the file, not HBase's."""
    return file.endswith(_NATIVE)


def _members(table: str, mark: str) -> Iterator[str]:
    with zipfile.ZipFile(archive_of(table)) as archive:
        for name in archive.namelist():
            if mark in name and "/.hoodie/metadata/" in name and "/._" not in name:
                yield name
