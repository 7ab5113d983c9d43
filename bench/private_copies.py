"""Private copies of tables, so that each write begins with the same one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.places import WORK


@contextmanager
def new_folder() -> Iterator[Path]:
    """A path where a table can be made, which is gone afterwards."""
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK, prefix="copy-") as folder:
        yield Path(folder) / "orders"


@contextmanager
def private_copy(table: Path) -> Iterator[Path]:
    """A copy of a table, which is gone afterwards.

    Its data files are further names of the same files, which no writer of tables ever changes.
    """
    with new_folder() as copy:
        shutil.copytree(table, copy, copy_function=_copied)
        yield copy


def _copied(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
