"""What holds files back: the lists in savepoints, and in plans that are yet to be executed."""

from collections.abc import Iterator, Mapping

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import compaction, replace, savepoint
from lakewarden.engine.formats.instant_metadata.codec import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.services.retention.clean_plan import FileHold, FileHolder
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant

_PartitionAndName = tuple[str, str]


def held_files(active: ActiveTimeline) -> Mapping[_PartitionAndName, FileHolder]:
    """The files that savepoints and pending plans name, and by which of them they are held."""
    held: dict[_PartitionAndName, FileHolder] = {}
    for instant in active.pending(frozenset(_PLANNED)):
        for file in _of_plan(active, instant):
            held.setdefault(file, FileHolder(FileHold.PLAN, instant.requested))
    for instant in active.savepoints():
        for file in savepointed(active, instant):
            held[file] = FileHolder(FileHold.SAVEPOINT, instant.requested)
    return held


def savepointed(active: ActiveTimeline, instant: Instant) -> Iterator[_PartitionAndName]:
    """The files that a savepoint protects; one that was cut short was never published."""
    content = active.read(instant)
    if not is_whole_container(content):
        return
    metadata = savepoint.decode(content, active.path(instant))
    for partition, listed in metadata.partition_metadata.items():
        for name in listed.savepoint_data_file:
            yield partition, name


def _of_plan(active: ActiveTimeline, instant: Instant) -> Iterator[_PartitionAndName]:
    files = active.files_of(instant)
    requested = None if files is None else files.requested
    if requested is None:
        return
    try:
        yield from _PLANNED[instant.action](active.read(requested.instant), requested.entry.path)
    except CorruptTable as error:
        # A plan that was cut short was never published, and will never be executed.
        if error.code != TORN_PLAN:
            raise


def _of_compaction(content: bytes, path: str) -> Iterator[_PartitionAndName]:
    for operation in compaction.decode_plan(content, path).operations:
        for address in (operation.data_file_path, *operation.delta_file_paths):
            if address:
                yield operation.partition_path or "", address.rpartition("/")[2]


def _of_clustering(content: bytes, path: str) -> Iterator[_PartitionAndName]:
    plan = replace.decode_plan(content, path).clustering_plan
    for group in plan.input_groups if plan else ():
        for slice_ in group.slices:
            for address in (slice_.data_file_path, *slice_.delta_file_paths):
                if address:
                    yield slice_.partition_path or "", address.rpartition("/")[2]


_PLANNED = {
    Action.COMPACTION: _of_compaction,
    Action.LOG_COMPACTION: _of_compaction,
    Action.CLUSTERING: _of_clustering,
}
