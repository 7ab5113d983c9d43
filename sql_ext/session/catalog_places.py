"""Places from a catalog: what it says of a table becomes a path, or the reason why it can't."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TypedDict

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import TableAddress
from lakewarden.storage_options import storage_options

OURS = "lakewarden"
PROVIDERS = frozenset({OURS, "hudi", "org.apache.hudi"})


class CatalogTable(TypedDict, total=False):
    """What the JVM tells of a name."""

    path: str
    provider: str
    properties: Mapping[str, str]
    # The names that there are, where this one is not.
    known: Sequence[str]
    unreadable: bool


def place_of(table: str, found: CatalogTable, options: Mapping[str, object]) -> TableAddress:
    """The place of a table, with the session's storage options and its own."""
    if found.get("unreadable"):
        raise _unreadable(table)
    if "path" not in found:
        raise _unknown(table, found.get("known", ()))
    if found["provider"].lower() not in PROVIDERS:
        raise _foreign(table, found["provider"])
    return TableAddress(found["path"], {**options, **storage_options(found["properties"])})


def is_foreign(found: CatalogTable, *, has_hudi: bool) -> bool:
    """Whether a table is there and not ours; `has_hudi` where Hudi's own extension is."""
    provider = found.get("provider", OURS).lower()
    return provider not in PROVIDERS or (has_hudi and provider != OURS)


class FoundTables(TypedDict, total=False):
    """What the JVM tells of a database."""

    database: str
    # The provider of each table, by its name.
    tables: Mapping[str, str]
    # The databases that there are, where this one is not.
    known: Sequence[str]


def tables_of(database: str, found: FoundTables) -> list[str]:
    """The names of a database's Hudi tables."""
    if "tables" not in found:
        raise _unknown_database(database, found["known"])
    return [
        f"`{found['database']}`.`{table}`"
        for table, provider in found["tables"].items()
        if provider.lower() in PROVIDERS
    ]


def _unreadable(table: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_table_name",
        what=f"{table!r} is not the name of a table.",
        why="A name has up to three parts with dots between them, in backquotes where needed.",
        now="Correct the name, or give path => '/where/it/is'.",
        table=table,
    )


def _unknown(table: str, known: Sequence[str]) -> InvalidRequest:
    last = table.rpartition(".")[2].strip("`").lower()
    return InvalidRequest(
        "unknown_table",
        what=f"The catalog has no table {table}.",
        why="The session's catalog does not have that name.",
        now=_nearest(last, known) or "Give path => '/where/it/is'.",
        table=table,
    )


def _unknown_database(database: str, known: Sequence[str]) -> InvalidRequest:
    return InvalidRequest(
        "unknown_database",
        what=f"The catalog has no database {database}.",
        why="The session's catalog does not have that name.",
        now=_nearest(database, known) or "SHOW DATABASES lists them.",
        database=database,
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {found[0]!r}?" if found else ""


def _foreign(table: str, provider: str) -> InvalidRequest:
    return InvalidRequest(
        "not_a_table",
        what=f"{table} is not a Hudi table.",
        why=f"Its provider in the catalog is {provider}.",
        now="Name a table that is USING lakewarden or USING hudi.",
        table=table,
    )
