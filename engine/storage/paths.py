"""Paths inside a storage: relative, separated by `/`, and never leading out of its root.

The border: a table's folder, which no path out of the table's own metadata leads across.

Plans, commits, markers and properties are files that anybody may have written. What they name is
checked here when they are read, before anything is opened, made or deleted. `said_by` is the file
that names it, and stands in the error. Links are the local storage's business.
"""

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest

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


# Refuses what it is given with an error, or does nothing.
Check = Callable[[str, str], None]

HOODIE_FOLDER = ".hoodie"

# Object stores have 1024 bytes for a whole key, file systems 255 for a name and 4096 for a path.
_NAME_BYTES_MAX = 1024
_PATH_BYTES_MAX = 4096
_SHOWN_CHARACTERS = 80

# What nearly every name is made of; anything else is looked at more closely.
_PLAIN_NAME = re.compile(r"\w[\w=:,+@~ .-]{0,200}", re.ASCII)
_PLAIN_PATH = re.compile(r"\w[\w=:,+@~ .-]{0,200}(?:/\w[\w=:,+@~ .-]{0,200}){0,8}", re.ASCII)
_PLAIN_FILE = re.compile(
    r"\w[\w-]{0,200}\.(?:parquet|hfile)|\.\w[\w-]{0,200}\.log\.[0-9]{1,9}_[0-9-]{0,40}", re.ASCII
)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_DOTS = (".", "..")
_BASE_FILE = re.compile(r"[^./\\][^/\\]*\.(?:parquet|hfile|orc|lance)")
_LOG_FILE = re.compile(r"\.[^/\\]+\.log\.[0-9]+(?:_[0-9-]*)?(?:\.cdc)?")
_INSTANT = re.compile(r"[0-9]{1,40}")
_INDEX_DEFINITIONS = re.compile(r"\.hoodie/\.index_defs/[\w-][\w.-]*")
# Folders of `.hoodie` that are no place for a timeline.
_TAKEN = frozenset({"metadata", ".lakewarden", ".heartbeat", ".temp", ".locks", ".index_defs"})


def check_path(path: str, said_by: str) -> None:
    """A file or folder of the table, relative to its root, and none of the table's own files."""
    if _PLAIN_PATH.fullmatch(path):
        return
    reason = _fault(path)
    if reason is not None:
        raise _refused(path, said_by, reason)


def check_partition(partition: str, said_by: str) -> None:
    """A partition's path; the empty one is that of a table without partitions."""
    if partition:
        check_path(partition, said_by)


def check_name(name: str, said_by: str) -> None:
    """A single name, as a file id is one."""
    if _PLAIN_NAME.fullmatch(name):
        return
    reason = "It is not a single name." if "/" in name or "\\" in name else _fault(name)
    if reason is not None:
        raise _refused(name, said_by, reason)


def check_file_id(file_id: str, said_by: str) -> None:
    """A file id, which is empty where there is none."""
    if file_id:
        check_name(file_id, said_by)


def check_data_file(name: str, said_by: str) -> None:
    """The bare name of a base or log file."""
    if _PLAIN_FILE.fullmatch(name):
        return
    is_data_file = _BASE_FILE.fullmatch(name) or _LOG_FILE.fullmatch(name)
    reason = _fault(name) if is_data_file else "It is not the name of a base file or log file."
    if reason is not None:
        raise _refused(name, said_by, reason)


def check_address(address: str, partition: str, said_by: str) -> None:
    """A base or log file, by its bare name or in full.

    A table may have been moved, so only the end of a full address counts: partition and name.
    """
    folder, _, name = address.rpartition("/")
    check_data_file(name, said_by)
    if not folder:
        return
    if any(part in _DOTS for part in re.split(r"[/\\]", folder)):
        raise _refused(address, said_by, "It has a part that starts with a dot.")
    if _CONTROL.search(folder) or len(folder) > _PATH_BYTES_MAX:
        raise _refused(address, said_by, "It is too long, or has control characters.")
    if partition and not f"/{folder}".endswith(f"/{partition}"):
        raise _refused(address, said_by, f"It is not in the partition {partition!r:.80}.")


def check_slice(
    partition: str | None, file_id: str | None, addresses: Iterable[str | None], said_by: str
) -> None:
    """A file slice as plans name it."""
    check_partition(partition or "", said_by)
    check_file_id(file_id or "", said_by)
    for address in addresses:
        if address:
            check_address(address, partition or "", said_by)


def check_instant(time: str, said_by: str) -> None:
    """The time of an instant, by which ledgers, markers and heartbeats are found."""
    if not _INSTANT.fullmatch(time):
        raise _refused(time, said_by, "It is not the time of an instant.")


def check_metadata_partition(name: str, said_by: str) -> None:
    """A partition of the metadata table, which is a folder there."""
    check_name(name, said_by)
    if name.startswith("."):
        raise _refused(name, said_by, "It is not a partition of the metadata table.")


def check_timeline_folder(folder: str, said_by: str) -> None:
    """Where below `.hoodie` the timeline or its history lies."""
    check_path(folder, said_by)
    if folder.partition("/")[0] in _TAKEN:
        raise _refused(folder, said_by, "That folder holds other files of the table.")


def check_definitions_path(path: str, said_by: str) -> None:
    """Where the definitions of indexes lie."""
    if not _INDEX_DEFINITIONS.fullmatch(path):
        raise _refused(path, said_by, "Index definitions are in .hoodie/.index_defs.")


def _fault(path: str) -> str | None:
    """Why a path is none inside a table, below its folder and not its own business."""
    try:
        size = len(path.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        return "It is not valid text."
    names = path.split("/")
    if size > _PATH_BYTES_MAX or any(len(name) > _NAME_BYTES_MAX for name in names):
        return "It is longer than any storage allows."
    if _CONTROL.search(path):
        return "It has control characters."
    if not all(names):
        return "It has an empty part, or starts at the root of the storage."
    if any(part in _DOTS for part in re.split(r"[/\\]", _decoded(path))):
        return "It has a part that starts with a dot."
    if any(name.lower() == HOODIE_FOLDER for name in names):
        return "It is below .hoodie."
    return None


def _decoded(path: str) -> str:
    """A path with dots that are written as percent and digits.

    No writer of tables does so, whatever a partition is called.
    """
    return unquote(path) if "%2e" in path.lower() else path


def _refused(text: str, said_by: str, reason: str) -> CorruptTable:
    shown = repr(text[:_SHOWN_CHARACTERS]) + ("..." if len(text) > _SHOWN_CHARACTERS else "")
    return CorruptTable(
        "path_outside_table",
        what=f"{said_by} names {shown}, which is not a path of the table's data.",
        why=reason,
        now="Find out who wrote that file. Nothing there was opened, created or deleted.",
        path=said_by,
        named=text[:_PATH_BYTES_MAX],
    )
