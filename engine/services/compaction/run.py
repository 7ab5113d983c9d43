"""Compacting: one task streams a slice, merged with its logs, into a new base file."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import log_order
from lakewarden.engine.file_groups.listing import Sizes
from lakewarden.engine.file_groups.planned_slices import slice_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation
from lakewarden.engine.read.merge.merge import SliceMerge
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.executor import ahead
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkerKind, leave_marker
from lakewarden.engine.write.files.base_files import (
    bloom_worth_keeping,
    new_base_file,
    write_base_file,
)
from lakewarden.engine.write.files.file_content import KeyGatherer
from lakewarden.engine.write.files.spec import (
    OWN_COLUMNS,
    WriteSpec,
    WrittenFile,
    with_file_columns,
)

# Files of more keys keep their filter, to which the keys are added that came with logs. Hashing
# fewer than these again takes less time than reading the filter, and forgets keys that are gone.
HASHED_ANEW_MAX = 30_000
# Memory that is free goes back to the system only for files as large as this together: a smaller
# slice would at once ask for it again, and waiting for that is a twelfth of its time.
RELEASING_BYTES_MIN = 128 << 20

_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One operation of a plan; the number is its own within the plan."""

    number: int
    operation: CompactionOperation
    # How long its logs are, by their names.
    recorded: Sizes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Compacting:
    """Makes the new base file of a task; it travels to other processes."""

    spec: WriteSpec

    def __call__(self, place: FencedTaskContext, task: CompactionTask) -> WrittenFile:
        slice_ = planned_slice(place, task)
        # What the file before has taken goes.
        _give_memory_back(slice_)
        spec = replace(self.spec, task_attempt=place.task_attempt)
        target = new_base_file(slice_.key, spec, task.number)
        kind = MarkerKind.CREATE if slice_.base_file is None else MarkerKind.MERGE
        leave_marker(place.storage, spec.instant, target, kind)
        bloom = bloom_worth_keeping(place.storage, slice_, rebuilt_up_to=HASHED_ANEW_MAX)
        keys = KeyGatherer(spec.key_footers, bloom)
        columns = (*OWN_COLUMNS, *spec.schema.columns.names)
        reader = SliceReader(place.storage, replace(spec.read, columns=columns))
        merge = reader.merge(slice_)
        # So does what reading the logs has taken besides their records.
        _give_memory_back(slice_)
        merged = _rows(place, merge, keys)
        parts = (
            with_file_columns(rows, target.partition, target.name)
            for rows in (merged if spec.threads == 1 else ahead(merged))
        )
        file, stat = write_base_file(place.storage, spec, target, slice_.file_id, parts, keys)
        place.keep(target.path)
        return WrittenFile(slice_.key, _reported(stat, slice_, merge), file, _NO_KEYS, _NO_KEYS)


def planned_slice(place: FencedTaskContext, task: CompactionTask) -> FileSlice:
    """Exactly the files of the plan: logs that came later belong to the new slice."""
    slice_ = slice_of(place.storage, task.operation, task.recorded)
    return replace(slice_, log_files=tuple(sorted(slice_.log_files, key=log_order)))


def _give_memory_back(slice_: FileSlice) -> None:
    """Free memory goes back to the system, if the slice is worth it."""
    if slice_.size_bytes >= RELEASING_BYTES_MIN:
        pa.default_memory_pool().release_unused()


def _rows(place: FencedTaskContext, merge: SliceMerge, keys: KeyGatherer) -> Iterator[pa.Table]:
    for rows in merge.base_rows():
        place.assert_mine()
        keys.add(rows.column(RECORD_KEY), are_new=False)
        yield rows
    rows = merge.new_rows()
    keys.add(rows.column(RECORD_KEY), are_new=True)
    yield rows


def _reported(stat: WriteStat, slice_: FileSlice, merge: SliceMerge) -> WriteStat:
    """What Java's compactions say besides."""
    tally, logs = merge.tally, merge.logs
    return replace(
        stat,
        prev_commit=slice_.base_instant,
        prev_base_file=slice_.base_file.name if slice_.base_file else None,
        num_update_writes=tally.updates,
        num_deletes=tally.deletes,
        num_inserts=tally.inserts,
        total_log_records=logs.records,
        total_updated_records_compacted=merge.keys,
        total_log_blocks=logs.blocks,
        total_rollback_blocks=logs.rollback_blocks,
        total_log_files_compacted=len(slice_.log_files),
        total_log_size_compacted=logs.data_bytes,
    )
