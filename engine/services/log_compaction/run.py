"""Folding logs: one task puts the logs of a file group together into one.

Records keep the commit time and sequence number that they have, so that readers of changes do not
see them twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.listing import Sizes
from lakewarden.engine.file_groups.planned_slices import slice_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import RuntimeStats, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.changes import NewFile
from lakewarden.engine.metadata.entries.summaries import summaries_of_rows
from lakewarden.engine.read.merge.entries import Records, log_entries, ordering_columns
from lakewarden.engine.read.merge.fold import Folded, fold
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.merge_rules import MergeMode
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.write.files.file_content import with_log_content
from lakewarden.engine.write.files.log_files import LOG_VERSION, LogDeletes, store_log
from lakewarden.engine.write.files.spec import WriteSpec, WrittenFile, constant

# Keys, the entry that stands for each, and whether it is unconditional.
Entries: TypeAlias = tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.bool_]]

_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class FoldTask:
    """The logs of one file group; travels to other processes."""

    number: int
    operation: CompactionOperation
    # How long its logs are, by their names.
    recorded: Sizes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Folding:
    """Folds logs wherever it is unpacked."""

    spec: WriteSpec

    def __call__(self, place: FencedTaskContext, task: FoldTask) -> WrittenFile:
        spec = replace(self.spec, task_attempt=place.task_attempt)
        file = fold_logs(place.storage, spec, task)
        assert file.stat.path is not None
        place.keep(file.stat.path)
        return file


def fold_logs(storage: Storage, spec: WriteSpec, task: FoldTask) -> WrittenFile:
    """Write the log that stands for the logs of a task, its marker first.

    It holds the records and the deletes that are left once the logs have met one another. The base
    file is not looked at: it meets the outcome when it is read. Deletes that records came after are
    in front of these, so that no record takes from the base file what was deleted there.
    """
    slice_ = slice_of(storage, task.operation, task.recorded)
    reader = SliceReader(storage, spec.read)
    blocks = reader.log_blocks(slice_)
    _refuse_partial(slice_, blocks)
    parts = reader.contents(blocks, spec.read.schema)
    entries = log_entries(parts, spec.read.schema, spec.rules)
    folded = fold(entries, spec.rules, spec.read.defaults)
    records = folded.records.take(pa.array(folded.rows[~folded.is_delete]))
    deletes = LogDeletes(
        _deletes(*_before_records(folded), parts, spec, slice_.partition),
        _deletes(*_last_words(folded), parts, spec, slice_.partition),
    )
    name = f".{slice_.file_id}_{spec.instant}.log.{LOG_VERSION}_{spec.write_token(task.number)}"
    marked = MarkedFile(slice_.partition, name)
    leave_marker(storage, spec.instant, marked, MarkerKind.CREATE)
    compacted = tuple(dict.fromkeys(block.instant for block in blocks))
    size_bytes = store_log(storage, marked.path, records, deletes, spec, compacted=compacted)
    columns = summaries_of_rows(records, spec.summarised)
    known = NewFile(slice_.partition, name, size_bytes, columns)
    file = with_log_content(known, records, spec.indexes)
    stat = WriteStat(
        file_id=slice_.file_id,
        path=marked.path,
        partition_path=slice_.partition,
        prev_commit=slice_.base_instant,
        num_writes=len(records),
        num_update_writes=len(records),
        num_deletes=len(deletes.after),
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=LOG_VERSION,
        log_offset=0,
        base_file="",
        log_files=(name,),
        total_log_records=len(entries),
        total_updated_records_compacted=len(folded),
        total_log_blocks=len(blocks),
        total_log_files_compacted=len(slice_.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in slice_.log_files),
        runtime_stats=RuntimeStats(),
    )
    return WrittenFile(slice_.key, stat, file, _NO_KEYS, _NO_KEYS)


def _last_words(folded: Folded) -> Entries:
    """The deletes that are left."""
    is_last = folded.is_delete
    return (
        folded.keys.filter(pa.array(is_last)),
        folded.fates.winner[is_last],
        (folded.is_unconditional[is_last]),
    )


def _before_records(folded: Folded) -> Entries:
    """The deletes before what is left of a key, as far as they reach beyond it."""
    fates = folded.fates
    is_wiped = (fates.wiped >= 0) & (fates.wiped != fates.winner)
    is_cut = (fates.cut >= 0) & ~folded.is_delete
    chosen = is_wiped | is_cut
    entries = np.where(is_wiped, fates.wiped, fates.cut)[chosen]
    return folded.keys.filter(pa.array(chosen)), entries, is_wiped[chosen]


def _deletes(
    keys: pa.Array,
    entries: npt.NDArray[np.int64],
    is_unconditional: npt.NDArray[np.bool_],
    parts: Sequence[Records | Deletes],
    spec: WriteSpec,
    partition: str,
) -> Deletes:
    """Deletes of keys by some entries, with the ordering values up to which these reach."""
    partitions = constant(partition, len(keys))
    conditional = ~is_unconditional & (spec.rules.mode is MergeMode.EVENT_TIME)
    if not conditional.any() or not spec.rules.ordering_fields:
        return Deletes(keys, partitions, (), np.ones(len(keys), dtype=bool))
    columns = ordering_columns(parts, spec.read.schema, spec.rules)
    places = pa.array(entries)
    return Deletes(keys, partitions, tuple(c.take(places) for c in columns), ~conditional)


def _refuse_partial(slice_: FileSlice, blocks: Sequence[Block]) -> None:
    if any(block.is_partial for block in blocks):
        raise InvalidRequest(
            "unsupported_partial_log_compaction",
            what=f"The logs of file group {slice_.file_id} hold records of some columns only.",
            why="Merging them needs the base file, which log compaction does not read.",
            now="Cancel the plan and compact the file group instead.",
            partition=slice_.partition,
            file_id=slice_.file_id,
        )
