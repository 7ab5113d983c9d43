"""The files of timelines written by Java Hudi, and which codec reads each of them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    compaction,
    indexing,
    replace,
    restore,
    rollback,
    savepoint,
)
from tests.golden_tables import GOLDEN_TABLES, SHARED_TABLES, archive_of

_NAME = re.compile(
    r".*/\.hoodie/(?:metadata/\.hoodie/)?(?:timeline/)?"
    r"(?P<time>\d+)(?P<completed>_\d+)?\.(?P<action>[a-z]+)(?:\.(?P<state>[a-z]+))?"
)


@dataclass(frozen=True)
class Codec:
    """How a kind of file is read and written, whatever it is."""

    decode: Callable[[bytes, str], Any]
    encode: Callable[[Any], bytes]


COMMIT = Codec(commit.decode, commit.encode)
REPLACE = Codec(replace.decode, replace.encode)
REQUESTED_REPLACE = Codec(replace.decode_plan, replace.encode_plan)
COMPACTION = Codec(compaction.decode_plan, compaction.encode_plan)

CODECS = {
    "commit": COMMIT,
    "commit.inflight": COMMIT,
    "deltacommit": COMMIT,
    "deltacommit.inflight": COMMIT,
    "replacecommit.inflight": COMMIT,
    "replacecommit": REPLACE,
    "replacecommit.requested": REQUESTED_REPLACE,
    "clustering.requested": REQUESTED_REPLACE,
    "compaction.requested": COMPACTION,
    "logcompaction.requested": COMPACTION,
    "clean.requested": Codec(clean.decode_plan, clean.encode_plan),
    "clean.inflight": Codec(clean.decode_plan, clean.encode_plan),
    "clean": Codec(clean.decode, clean.encode),
    "rollback.requested": Codec(rollback.decode_plan, rollback.encode_plan),
    "rollback": Codec(rollback.decode, rollback.encode),
    "restore.requested": Codec(restore.decode_plan, restore.encode_plan),
    "restore": Codec(restore.decode, restore.encode),
    "savepoint": Codec(savepoint.decode, savepoint.encode),
    "indexing.requested": Codec(indexing.decode_plan, indexing.encode_plan),
    "indexing": Codec(indexing.decode, indexing.encode),
}


@dataclass(frozen=True)
class InstantFile:
    """A file of a timeline that has content."""

    path: str
    kind: str
    payload: bytes

    @property
    def is_json(self) -> bool:
        return self.payload.startswith(b"{")

    @property
    def codec(self) -> Codec:
        return CODECS[self.kind]


def instant_files(table: str) -> Iterator[InstantFile]:
    """The instant files with content of one table and of its metadata table."""
    yield from _files_in(archive_of(table))


@cache
def one_of_each_kind() -> dict[str, InstantFile]:
    """The first file of every kind that the tables of this repository have."""
    found: dict[str, InstantFile] = {}
    for table in GOLDEN_TABLES:
        for file in instant_files(table):
            found.setdefault(file.kind + " as JSON" * file.is_json, file)
    return found


ALL_TABLES = GOLDEN_TABLES + SHARED_TABLES


def _files_in(archive: Path) -> Iterator[InstantFile]:
    with ZipFile(archive) as packed:
        for entry in packed.infolist():
            match = _NAME.fullmatch(entry.filename)
            if match is None or not entry.file_size or "__MACOSX" in entry.filename:
                continue
            action, state = match["action"], match["state"]
            kind = "commit.inflight" if action == "inflight" else action
            yield InstantFile(
                entry.filename, f"{kind}.{state}" if state else kind, packed.read(entry)
            )
