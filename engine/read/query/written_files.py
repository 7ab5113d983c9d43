"""Written files: what writes say of themselves, archived ones too: their files, and what they
replaced."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import DataFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.file_groups.visibility import replaced_by
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A base or log file and its partition; it need not be there any more."""

    partition: str
    file: DataFile

    @property
    def key(self) -> FileGroupId:
        return FileGroupId(self.partition, self.file.file_id)

    @property
    def instant(self) -> str:
        """The write that made it; in version 6 a log has the name of its slice."""
        return self.file.instant

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.file.name}" if self.partition else self.file.name


@dataclass(frozen=True, slots=True)
class Written:
    """What some writes have made, and the file groups that they have put others in the place of."""

    files: tuple[PlacedFile, ...]
    replaced: Mapping[FileGroupId, str]


def written_by(timeline: Timeline, writes: Sequence[Instant]) -> Written:
    """What the metadata of some writes says."""
    files: list[PlacedFile] = []
    replaced: dict[FileGroupId, str] = {}
    for instant, content, path in contents_of(timeline, writes):
        for partition, stats in commit.decode(content, path).partition_to_write_stats.items():
            files += data_files_at(partition, (stat.path for stat in stats if stat.path))
        if instant.action is Action.REPLACE_COMMIT:
            replaced |= dict.fromkeys(replaced_by(content, path), instant.requested)
    return Written(tuple(files), replaced)


def data_files_at(partition: str, addresses: Iterable[str]) -> Iterator[PlacedFile]:
    """The data files among some addresses; files of change data capture hold no rows."""
    for address in addresses:
        file = parse_file_name(address.rpartition("/")[2], 0)
        if file is not None and not (isinstance(file, LogFile) and file.is_cdc):
            yield PlacedFile(partition, file)


def contents_of(
    timeline: Timeline, writes: Sequence[Instant]
) -> Iterator[tuple[Instant, bytes, str]]:
    """The metadata of writes, oldest first."""
    active = timeline.active
    archived = [instant for instant in writes if active.files_of(instant) is None]
    if archived:
        wanted = frozenset(archived)
        first, last = min(archived).requested, max(archived).requested
        rows = list(timeline.archive.rows(COMPLETED_WRITES, first, last))
        for row in reversed(rows):
            if row.instant in wanted and row.metadata is not None:
                yield row.instant, row.metadata, str(row.instant)
    for instant in writes:
        if active.files_of(instant) is not None:
            yield instant, active.read(instant), active.path(instant)
