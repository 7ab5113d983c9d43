"""Scanning local folders, one `scandir` each, with sizes and times but without drafts."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from lakewarden.engine.storage.drafts import DRAFT_SUFFIX
from lakewarden.engine.storage.paths import prefix_of
from lakewarden.engine.storage.port import Entry

# Refuses a link that leads out.
CheckLink = Callable[[str], None]


def entry_of(path: str, status: os.stat_result) -> Entry | None:
    """The entry of a regular file; None for anything else."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return Entry(path, status.st_size, status.st_mtime_ns // 1_000_000)


def scan_folder(place: str, folder: str, check_link: CheckLink) -> tuple[list[Entry], list[str]]:
    """The files and folders directly in a place, named as below `folder`.

    A link with a target is checked and not skipped, since its files would be missing silently.
    """
    prefix = prefix_of(folder)
    files: list[Entry] = []
    folders: list[str] = []
    with os.scandir(place) as children:
        for child in children:
            if child.name.endswith(DRAFT_SUFFIX):
                continue
            path = prefix + child.name
            try:
                if child.is_symlink() and os.path.exists(child.path):
                    check_link(child.path)
                if child.is_dir():
                    folders.append(path)
                elif entry := entry_of(path, child.stat()):
                    files.append(entry)
            except FileNotFoundError:
                # It vanished since the listing, or is a link to nowhere.
                continue
    return files, folders


def scan_tree(place: str, folder: str, check_link: CheckLink) -> list[Entry]:
    """All files below a place; a loop of links ends with the system's ELOOP."""
    found, pending = scan_folder(place, folder, check_link)
    skipped = len(prefix_of(folder))
    while pending:
        path = pending.pop()
        with suppress(FileNotFoundError):
            files, folders = scan_folder(f"{place}/{path[skipped:]}", path, check_link)
            found += files
            pending += folders
    return found


def remove_tree(place: str) -> int:
    """Remove a folder and all below it, together with anybody else who does the same.

    Links are removed and not followed. The number of files this call removed, without drafts.
    """
    removed = 0
    with suppress(FileNotFoundError, NotADirectoryError):
        with os.scandir(place) as children:
            inside = [(child.path, child.is_dir(follow_symlinks=False)) for child in children]
        for path, is_folder in inside:
            removed += remove_tree(path) if is_folder else _remove_file(path)
        os.rmdir(place)
    return removed


def _remove_file(place: str) -> int:
    try:
        os.unlink(place)
    except FileNotFoundError:
        return 0
    return 0 if place.endswith(DRAFT_SUFFIX) else 1
