"""Kept files: what Hudi's procedures delete by hand stays, since the table counts on it."""

from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest

NeedDelete = Annotated[bool, "Refused: files leave a table by clean, rollback and restore only."]


def refuse_delete(procedure: str, *, need_delete: bool) -> None:
    """Refuse to delete data files because an argument says so."""
    if need_delete:
        raise InvalidRequest(
            "unsupported_delete",
            what=f"{procedure} does not delete files.",
            why="Every reader would miss a file that the table needs.",
            now="Roll back the write that left it: CALL rollback_to_instant, or restore a"
            " savepoint.",
            argument="need_delete",
        )
