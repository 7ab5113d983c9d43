"""Golden tables: which there are, where their archives lie, and how many rows each must give.

Two families. `GOLDEN_TABLES` are archives in this repository, each with a document of what Java
answers about it. `SHARED_TABLES` are the test tables of the Rust implementation; their archives are
looked for in a sibling folder of the checkout and are used only where that folder exists.
"""

import os
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

GoldenTable = Callable[[str], Path]
GoldenDocument = Callable[[str], dict[str, Any]]

GOLDEN_FOLDER = Path(__file__).parent / "golden"
SHARED_FOLDER = Path(__file__).parents[2] / "shared" / "golden"

GOLDEN_TABLES = tuple(sorted(path.stem for path in GOLDEN_FOLDER.glob("*.zip")))

# Snapshot row counts, counted by an independent reader; None where the table has no commit yet.
SHARED_ROW_COUNTS: dict[str, int | None] = {
    "quickstart_trips_table__mor__avro__v6_trips_8i1u": 8,
    "quickstart_trips_table__mor__avro__v8_trips_8i3u1d": 6,
    "sample_table__cow__v6_complexkeygen_hivestyle": 4,
    "sample_table__cow__v6_empty": None,
    "sample_table__cow__v6_nonpartitioned": 4,
    "sample_table__cow__v6_simplekeygen_hivestyle_no_metafields": 4,
    "sample_table__cow__v6_simplekeygen_nonhivestyle": 4,
    "sample_table__cow__v6_simplekeygen_nonhivestyle_overwritetable": 1,
    "sample_table__cow__v6_timebasedkeygen_nonhivestyle": 4,
    "sample_table__cow__v8_complexkeygen_hivestyle": 4,
    "sample_table__cow__v8_empty": None,
    "sample_table__cow__v8_nonpartitioned": 4,
    "sample_table__cow__v8_simplekeygen_hivestyle_no_metafields": 4,
    "sample_table__cow__v9_timebasedkeygen_epochmillis": 6,
    "sample_table__cow__v9_timebasedkeygen_nonhivestyle": 5,
    "sample_table__cow__v9_txns_complex_nometa": 12,
    "sample_table__cow__v9_txns_nonpart_meta": 14,
    "sample_table__cow__v9_txns_nonpart_nometa": 14,
    "sample_table__cow__v9_txns_simple_meta": 12,
    "sample_table__cow__v9_txns_simple_nometa": 12,
    "sample_table__cow__v9_txns_simple_overwrite": 3,
    "sample_table__mor__avro__v9_nonpartitioned_rollback": 4,
    "sample_table__mor__avro__v9_timebasedkeygen_nonhivestyle": 6,
    "sample_table__mor__avro__v9_txns_complex_nometa": 12,
    "sample_table__mor__avro__v9_txns_nonpart_meta": 14,
    "sample_table__mor__avro__v9_txns_nonpart_nometa": 14,
    "sample_table__mor__avro__v9_txns_simple_meta": 12,
    "sample_table__mor__avro__v9_txns_simple_nometa": 12,
    "sample_table__mor__avro__v9_txns_simple_overwrite": 3,
    "sample_table__mor__parquet__v6_complexkeygen_hivestyle": 4,
    "sample_table__mor__parquet__v6_empty": None,
    "sample_table__mor__parquet__v6_nonpartitioned": 4,
    "sample_table__mor__parquet__v6_nonpartitioned_rollback": 3,
    "sample_table__mor__parquet__v6_simplekeygen_hivestyle_no_metafields": 4,
    "sample_table__mor__parquet__v6_simplekeygen_nonhivestyle": 4,
    "sample_table__mor__parquet__v6_simplekeygen_nonhivestyle_overwritetable": 1,
}

SHARED_TABLES = tuple(
    name for name in SHARED_ROW_COUNTS if (SHARED_FOLDER / f"{name}.zip").is_file()
)

_EXTENDED_TIMESTAMP = 0x5455  # zip extra field "UT": modification time in UTC seconds


def archive_of(name: str) -> Path:
    """The zip archive of a golden or shared table."""
    for folder in (GOLDEN_FOLDER, SHARED_FOLDER):
        archive = folder / f"{name}.zip"
        if archive.is_file():
            return archive
    raise FileNotFoundError(f"no archive of a table named {name}")


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a table below `target` with modification times; the answer is the table's folder.

    Java takes modification times as completion times in table version 6, so they matter.
    """
    with zipfile.ZipFile(archive) as packed:
        entries = [entry for entry in packed.infolist() if not _is_archive_junk(entry.filename)]
        for entry in entries:
            packed.extract(entry, target)
        for entry in sorted(entries, key=lambda entry: entry.filename, reverse=True):
            modified = _modified_at(entry)
            os.utime(target / entry.filename, (modified, modified))
    (top,) = {entry.filename.split("/", 1)[0] for entry in entries}
    return target / top


def _is_archive_junk(name: str) -> bool:
    parts = name.rstrip("/").split("/")
    return parts[0] == "__MACOSX" or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


def _modified_at(entry: zipfile.ZipInfo) -> float:
    """Modification time in epoch seconds: the UTC extra field, else the plain one read as UTC."""
    extra = entry.extra
    while len(extra) >= 4:
        kind = int.from_bytes(extra[:2], "little")
        size = int.from_bytes(extra[2:4], "little")
        if kind == _EXTENDED_TIMESTAMP and size >= 5 and extra[4] & 1:
            return float(int.from_bytes(extra[5:9], "little", signed=True))
        extra = extra[4 + size :]
    return datetime(*entry.date_time, tzinfo=UTC).timestamp()
