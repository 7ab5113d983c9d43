"""Broken files: Parquet files that have no footer, or none that can be read."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.file_groups.file_names import BaseFile
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that is no Parquet file, and why."""

    path: str
    reason: str
    # A file that no write of the table has made, as its name tells.
    is_foreign: bool = False


def broken_files(
    storage: Storage,
    executor: Executor,
    partitions: Collection[str] = (),
    instants: Collection[str] = (),
) -> Iterator[BrokenFile]:
    """The broken files of some partitions and writes, of all without any; only footers are read.

    Files that only lie in the partitions come last; they are of no write.
    """
    chosen = tuple(partitions) or None
    listing = StorageListing(storage)
    paths = [
        f"{partition}/{file.name}" if partition else file.name
        for partition, files in listing.files(chosen).items()
        for file in files
        if isinstance(file, BaseFile)
        and file.extension == "parquet"
        and (not instants or file.instant in instants)
    ]
    yield from broken_among(storage, executor, paths)
    if not instants:
        foreign = [path for path in listing.foreign(chosen) if path.endswith(".parquet")]
        for found in broken_among(storage, executor, foreign):
            yield replace(found, is_foreign=True)


def broken_among(
    storage: Storage, executor: Executor, paths: Sequence[str]
) -> Iterator[BrokenFile]:
    """Those of some Parquet files that are broken."""
    for found in executor.map(partial(_checked, storage), paths):
        if found is not None:
            yield found


def _checked(storage: Storage, path: str) -> BrokenFile | None:
    try:
        BaseReader(storage).metadata(path)
    except CorruptTable as error:
        return BrokenFile(path, error.why)
    return None
