"""Chapters: the procedures that are declared, folder by folder, in the order of the reference."""

import difflib
from collections.abc import Iterator, Mapping
from types import ModuleType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures import (
    files,
    history,
    indexes,
    metadata,
    plans,
    savepoints,
    services,
    tables,
    validation,
)
from lakewarden.procedures.declaring.declaration import Call, Procedure

# Each folder is a chapter of the reference.
CHAPTERS: tuple[ModuleType, ...] = (
    history,
    plans,
    services,
    savepoints,
    metadata,
    indexes,
    files,
    tables,
    validation,
)


_NO_BOOTSTRAP = (
    "Lakewarden neither writes nor reads bootstrapped tables.",
    "CREATE TABLE AS SELECT * FROM parquet.`/path` makes a table of the files.",
)
_NO_SYNC = (
    "Lakewarden writes to no catalog but the session's.",
    "Register the table there: CREATE TABLE ... USING hudi LOCATION '/path'.",
)
# Procedures of Hudi that are none of ours: why, and what to do instead.
_ONLY_HUDIS: Mapping[str, tuple[str, str]] = {
    "run_bootstrap": _NO_BOOTSTRAP,
    "show_bootstrap_mapping": _NO_BOOTSTRAP,
    "show_bootstrap_partitions": _NO_BOOTSTRAP,
    "hdfs_parquet_import": (
        "Rows come into a table by writes.",
        "CREATE TABLE AS SELECT, or INSERT INTO, from parquet.`/path`.",
    ),
    "hive_sync": _NO_SYNC,
    "sync_validate": _NO_SYNC,
    "partition_bucket_index_manager": (
        "Lakewarden reads tables with bucket counts by partition, but writes none.",
        "Manage them with Hudi, or copy the rows into a table with one bucket count.",
    ),
}


def procedures_of(chapter: ModuleType) -> Iterator[Procedure]:
    """The procedures of a chapter, in the order of its `__all__`."""
    for name in chapter.__all__:
        call: type[Call] = getattr(chapter, name)
        yield call.declaration


def by_name(name: str, known: Mapping[str, Procedure]) -> Procedure:
    """The procedure of that name in any case, whatever stands before its last dot."""
    last = name.rpartition(".")[2].strip("` ").lower().replace("-", "_")
    found = known.get(last)
    if found is None:
        if last in _ONLY_HUDIS:
            why, now = _ONLY_HUDIS[last]
            what = f"Lakewarden has no procedure {last!r}."
            raise InvalidRequest("only_hudis_procedure", what=what, why=why, now=now)
        nearest = difflib.get_close_matches(last, known, n=1, cutoff=0.5)
        raise InvalidRequest(
            "unknown_procedure",
            what=f"Lakewarden has no procedure {last!r}.",
            why="No procedure has that name.",
            now=f"Did you mean {nearest[0]!r}?" if nearest else "CALL help() lists them.",
            procedure=last,
        )
    return found
