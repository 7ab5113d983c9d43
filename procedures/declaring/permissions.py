"""Permissions: which tables a caller may touch, and whether it may change them."""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.local_folders import absolute
from lakewarden.engine.storage.protocols import scheme_of


@dataclass(frozen=True, slots=True)
class Permissions:
    """Everything is allowed unless something else is said."""

    # Folders under which tables must be; None allows them anywhere.
    allowed_roots: tuple[str, ...] | None = None
    is_read_only: bool = False

    def check_path(self, path: str) -> None:
        """Refuse a path outside of the allowed roots, before anything of it is looked at."""
        if self.allowed_roots is not None and not is_under(path, self.allowed_roots):
            raise InvalidRequest(
                "path_not_allowed",
                what=f"This session may not use {path}.",
                why="`lakewarden.allowed.roots` limits the folders of tables.",
                now="Use a table in one of them, or ask the operator of this server.",
                path=path,
            )

    def check_change(self, procedure: str) -> None:
        """Refuse whatever changes a table where only looking is allowed."""
        if self.is_read_only:
            raise InvalidRequest(
                "read_only",
                what=f"{procedure} is not allowed here: it changes a table.",
                why="The session is read-only (`lakewarden.read.only`).",
                now="For a preview use dry_run => true, otherwise a session that may write.",
                procedure=procedure,
            )

    def check_storage(self, statement: str) -> None:
        """Refuse a statement that is not about tables of ours, and changes what is stored."""
        if self.is_read_only:
            raise InvalidRequest(
                "read_only",
                what=f"{statement} is not allowed here: it changes files or the catalog.",
                why="The session is read-only (`lakewarden.read.only`).",
                now="Use a session that may write.",
                statement=statement,
            )


def is_under(path: str, roots: Sequence[str]) -> bool:
    """Whether a path is one of some folders or inside of one, wherever links and dots lead."""
    place = resolved(path)
    return any(place == root or place.startswith(f"{root}/") for root in map(resolved, roots))


def resolved(path: str) -> str:
    """Where a path leads to, without links and dots."""
    scheme = scheme_of(path)
    if scheme in (None, "file"):
        return os.path.realpath(absolute(path)[1]).rstrip("/")
    place = posixpath.normpath(path.removeprefix(f"{scheme}://"))
    return f"{scheme}://{place}".rstrip("/")
