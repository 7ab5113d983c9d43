"""Paths inside a storage: relative, separated by `/`, and never leading out of its root."""

from lakewarden.engine.kernel.errors import InvalidRequest

_NOT_NAMES = ("", ".", "..")


def checked_file(path: str) -> str:
    """The path of a file, or `InvalidRequest` with code `invalid_path`."""
    if not _is_encodable(path) or any(name in _NOT_NAMES for name in path.split("/")):
        raise InvalidRequest(
            "invalid_path",
            what=f"{path!r} is not a path in a storage.",
            why="Paths are relative to the root and have no parts '', '.' or '..'.",
            now="Use the path as a listing shows it.",
            path=path,
        )
    return path


def checked_folder(folder: str) -> str:
    """The path of a folder; the empty one is the root itself."""
    return checked_file(folder) if folder else folder


def joined(folder: str, name: str) -> str:
    """A path below a folder; either may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def prefix_of(folder: str) -> str:
    """What every path below a folder begins with."""
    return f"{folder}/" if folder else ""


def _is_encodable(path: str) -> bool:
    try:
        # Names that are no UTF-8 on a local disk come back from a listing in this form.
        return b"\0" not in path.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
