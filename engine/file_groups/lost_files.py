"""Lost files: what completed writes name and the newest readers need, and is not there as it was.

A table without a metadata table is listed, and a listing cannot miss what it does not show. So the
slices are built as they would be if every file that the commits name were there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import DataFile, parse_file_name
from lakewarden.engine.file_groups.recorded_sizes import RecordedSizes
from lakewarden.engine.file_groups.slices import FileSlice, Visibility, file_groups


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file that is gone or shorter than a completed write has left it."""

    partition: str
    name: str
    recorded_bytes: int
    # None for one that is not there at all.
    found_bytes: int | None


def lost_files(
    there: Mapping[str, Sequence[DataFile]], recorded: RecordedSizes, visibility: Visibility
) -> Iterator[LostFile]:
    """The files of the newest slices that have lost bytes, as far as the active timeline knows."""
    for partition, sizes in sorted(recorded.every().items()):
        listed = {file.name: file for file in there.get(partition, ())}
        named = (parse_file_name(name, size) for name, size in sizes.items() if name not in listed)
        files = [*listed.values(), *(file for file in named if file is not None)]
        for group in file_groups(partition, files, visibility):
            for name in _names(group.latest_merged()):
                found = listed.get(name)
                found_bytes = None if found is None else found.size_bytes
                if (found_bytes or 0) < sizes.get(name, 0):
                    yield LostFile(partition, name, sizes[name], found_bytes)


def _names(slice_: FileSlice) -> Iterator[str]:
    if slice_.base_file is not None:
        yield slice_.base_file.name
    for log in slice_.log_files:
        yield log.name
