"""What the metadata table says, seen from outside: its files, their sizes, and what it lists."""

from collections.abc import Iterator, Set
from dataclasses import dataclass

from lakewarden.engine.file_groups.listing import FileSource, StorageListing
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.sizes import MetadataSizes, sizes_of
from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.snapshot import Snapshot

_NO_SIZES: dict[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile:
    """A data file, as the storage shows it and as the metadata table lists it."""

    partition: str
    name: str
    # None where it is not there.
    storage_bytes: int | None
    metadata_bytes: int | None

    @property
    def is_same(self) -> bool:
        return self.storage_bytes == self.metadata_bytes


def metadata_listing(state: Snapshot) -> FileSource:
    """The files that the metadata table lists; a table without one is refused."""
    if not state.config.has_metadata(FILES):
        raise no_metadata_table(state)
    # Whether readers believe it or not.
    return MetadataListing(state.metadata.partition(FILES))


def metadata_sizes(state: Snapshot) -> tuple[MetadataSizes, ...]:
    """What each partition of the metadata table takes."""
    if not state.config.metadata_partitions:
        raise no_metadata_table(state)
    return tuple(sizes_of(state.metadata, one) for one in sorted(state.config.metadata_partitions))


def compare_files(state: Snapshot) -> Iterator[ComparedFile]:
    """All files of the storage and of the metadata table, side by side.

    Files of pending instants are skipped: the metadata table learns of them when they complete.
    """
    pending = {instant.requested for instant in state.timeline.active.pending()}
    listed = _sizes(metadata_listing(state), frozenset())
    there = _sizes(StorageListing(state.storage), pending)
    for partition in sorted(listed.keys() | there.keys()):
        ours, theirs = listed.get(partition, _NO_SIZES), there.get(partition, _NO_SIZES)
        for name in sorted(ours.keys() | theirs.keys()):
            yield ComparedFile(
                partition=partition,
                name=name,
                storage_bytes=theirs.get(name),
                metadata_bytes=ours.get(name),
            )


def no_metadata_table(state: Snapshot) -> InvalidRequest:
    return InvalidRequest(
        "no_metadata_table",
        what=f"The table {state.config.name!r} has no metadata table.",
        why="Its property `hoodie.table.metadata.partitions` lists none.",
        now="Create one: CALL create_metadata_table(...).",
        table=state.config.name,
    )


def _sizes(source: FileSource, without: Set[str]) -> dict[str, dict[str, int]]:
    return {
        partition: {file.name: file.size_bytes for file in files if file.instant not in without}
        for partition, files in source.files().items()
    }
