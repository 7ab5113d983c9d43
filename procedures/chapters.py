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
        nearest = difflib.get_close_matches(last, known, n=1, cutoff=0.5)
        raise InvalidRequest(
            "unknown_procedure",
            what=f"Lakewarden has no procedure {last!r}.",
            why="No procedure has that name.",
            now=f"Did you mean {nearest[0]!r}?" if nearest else "CALL help() lists them.",
            procedure=last,
        )
    return found
