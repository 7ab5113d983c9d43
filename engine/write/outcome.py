"""The outcome of a write: what its files mean for the commit and for the metadata table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange, ValueChange
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.write.files.written import WrittenFile

FileIds = Mapping[str, tuple[str, ...]]


def commit_metadata(
    files: Sequence[WrittenFile],
    operation: Operation,
    schema_text: str,
    *,
    extra: Mapping[str, str],
    replaced: FileIds | None = None,
) -> CommitMetadata:
    """The content of the completed instant; a replace commit where file groups were replaced."""
    stats: dict[str, list[WriteStat]] = {}
    for file in files:
        stats.setdefault(file.key.partition, []).append(file.stat)
    metadata = CommitMetadata(
        partition_to_write_stats={name: tuple(stats[name]) for name in sorted(stats)},
        extra_metadata={SCHEMA_KEY: schema_text, **extra},
        operation_type=operation,
    )
    if replaced is None:
        return metadata
    return ReplaceCommitMetadata(
        partition_to_write_stats=metadata.partition_to_write_stats,
        extra_metadata=metadata.extra_metadata,
        operation_type=operation,
        partition_to_replace_file_ids=dict(replaced),
    )


def table_change(
    instant: str,
    files: Sequence[WrittenFile],
    *,
    index_removals: Sequence[Removed] = (),
    stays: Sequence[Located] = (),
    valued: Sequence[ValueChange] = (),
    is_global: bool,
) -> TableChange:
    """What the metadata table has to learn of the files.

    `index_removals` are keys of file groups that were replaced, `stays` those that live on in one
    group though others lose them, `valued` what secondary indexes learn of both. A key that left
    one group and arrived in another has moved; for an index over all partitions it has not gone.
    """
    located = [Located(file.arrived, file.key) for file in files if len(file.arrived)] + [*stays]
    arrived: dict[str, list[pa.Array]] = {}
    for one in located:
        arrived.setdefault("" if is_global else one.home.partition, []).append(one.keys)
    left = [Removed(file.left, file.key.partition) for file in files if len(file.left)]
    return TableChange(
        instant=instant,
        new_files=tuple(one for file in files for one in file.files),
        located=tuple(located),
        valued=(*(one for file in files for one in file.valued), *valued),
        removed=tuple(
            gone
            for removed in (*left, *index_removals)
            if len((gone := _gone(removed, arrived, is_global=is_global)).keys)
        ),
    )


def _gone(removed: Removed, arrived: Mapping[str, list[pa.Array]], *, is_global: bool) -> Removed:
    elsewhere = arrived.get("" if is_global else removed.partition)
    if not elsewhere:
        return removed
    has_arrived = pc.is_in(removed.keys, value_set=pa.concat_arrays(elsewhere))
    return replace(removed, keys=removed.keys.filter(pc.invert(has_arrived)))


def live_files(
    groups: Iterable[FileGroup],
    files: Sequence[WrittenFile],
    replaced: FileIds,
    consumed: Mapping[FileGroupId, frozenset[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """The files of the latest slices of each touched partition, once the write has completed.

    `groups` are the file groups of these partitions as they are before. A new base file takes the
    place of all that its group has; a service replaces what it has `consumed`, and nothing newer.
    """
    consumed = consumed or {}
    live: dict[FileGroupId, list[str]] = {}
    for group in groups:
        slice_ = group.latest_merged()
        base = [slice_.base_file.name] if slice_.base_file else []
        names = base + [log.name for log in slice_.log_files]
        gone = consumed.get(group.key, frozenset())
        live[group.key] = [name for name in names if name not in gone]
    for file in files:
        if file.stat.log_files is None and file.key not in consumed:
            live[file.key] = []
        live.setdefault(file.key, []).append(file.file.name)
    for partition, file_ids in replaced.items():
        for file_id in file_ids:
            live.pop(FileGroupId(partition, file_id), None)
    touched: dict[str, list[str]] = {file.key.partition: [] for file in files}
    touched |= {partition: [] for partition in replaced}
    for key in sorted(live):
        if key.partition in touched:
            touched[key.partition] += live[key]
    return {partition: tuple(names) for partition, names in touched.items()}
