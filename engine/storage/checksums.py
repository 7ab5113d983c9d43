"""The `.crc` files Hadoop keeps beside local files: `.X.crc` holds the checksum of `X`.

Java refuses a file whose checksum file is out of date, so a process that replaces `X` removes
`.X.crc` first: a missing checksum is accepted. Java creates `X` before `.X.crc`, and if the
checksum file is removed meanwhile, Java's `X` stays empty for ever. So a process may touch `.X.crc`
only if it holds `X` or knows the checksum file to be old.
"""

import os
from contextlib import suppress

SETTLED_AFTER_SECONDS = 60


def is_checksum(name: str) -> bool:
    """Whether a file of that name holds a checksum, and nothing of the table."""
    return name.startswith(".") and name.endswith(".crc")


def drop_checksum(place: str) -> None:
    """Remove the checksum file of a file that is ours to replace or remove."""
    with suppress(FileNotFoundError):
        os.unlink(_checksum_place(place))


def drop_stale_checksum(place: str, now: float) -> None:
    """Remove an old checksum file that outlived its file; `now` is a time of that file system."""
    with suppress(FileNotFoundError):
        age = now - os.stat(_checksum_place(place)).st_mtime
        if age > SETTLED_AFTER_SECONDS and not os.path.lexists(place):
            drop_checksum(place)


def _checksum_place(place: str) -> str:
    folder, _, name = place.rpartition("/")
    return f"{folder}/.{name}.crc"
