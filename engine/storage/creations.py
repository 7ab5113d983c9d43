"""Judging a create that was not plainly granted, by what is there now."""

from lakewarden.engine.storage.port import Creation, Lost, Unknown, Won


def judged(payload: bytes, content: bytes | None, cause: str, *, refused: bool) -> Creation:
    """Who created the file, when this call was refused as existing or ended in an error.

    Our very payload means that this call, or its own retry, won. Nothing there proves nothing:
    a request under way may still arrive. An empty file has no author.
    """
    if content is None:
        return Unknown(cause)
    if content == payload:
        if payload:
            return Won()
        if not refused:
            return Unknown(cause)
    return Lost(content)
