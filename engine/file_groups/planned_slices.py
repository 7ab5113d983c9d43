"""Planned slices: file slices as the plans of compaction and log compaction name them, and back."""

from collections.abc import Mapping
from dataclasses import replace

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.listing import RecordedSizes, Sizes
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation
from lakewarden.engine.storage.port import Storage

_MEGABYTE = 1 << 20
# The size a base file is to have, which is reckoned for one that is not there yet.
NEW_BASE_BYTES = 120 * _MEGABYTE


def operation_of(slice_: FileSlice, new_base_bytes: int = NEW_BASE_BYTES) -> CompactionOperation:
    """A slice as a plan names it: by bare file names, with the figures that Java gives."""
    return CompactionOperation(
        base_instant_time=slice_.base_instant,
        delta_file_paths=tuple(log.name for log in slice_.log_files),
        data_file_path=slice_.base_file.name if slice_.base_file else None,
        file_id=slice_.file_id,
        partition_path=slice_.partition,
        metrics=_figures(slice_, new_base_bytes),
    )


def io_megabytes(slice_: FileSlice, new_base_bytes: int = NEW_BASE_BYTES) -> int:
    """What compacting a slice reads and writes, as Java reckons it."""
    return int(_figures(slice_, new_base_bytes)["TOTAL_IO_MB"])


def slice_of(
    storage: Storage, operation: CompactionOperation, recorded: Sizes | None = None
) -> FileSlice:
    """The slice that an operation of a plan names; a file that is gone has no bytes.

    Logs of which sizes are recorded are held against these when they are read.
    """
    partition = operation.partition_path or ""
    addresses = [*operation.delta_file_paths, *filter(None, [operation.data_file_path])]
    # Plans of version 1 name files in full.
    names = [address.rpartition("/")[2] for address in addresses]
    files = [parse_file_name(name, _size(storage, partition, name)) for name in names]
    bases = [file for file in files if isinstance(file, BaseFile)]
    return FileSlice(
        partition,
        operation.file_id or "",
        operation.base_instant_time or "",
        bases[0] if bases else None,
        tuple(
            replace(file, recorded_bytes=(recorded or {}).get(file.name, 0))
            for file in files
            if isinstance(file, LogFile)
        ),
    )


def slice_among(files: Mapping[str, DataFile], operation: CompactionOperation) -> FileSlice | None:
    """The slice that an operation names, of files by their names; None if one of them is gone."""
    addresses = [*operation.delta_file_paths, *filter(None, [operation.data_file_path])]
    found = [files.get(address.rpartition("/")[2]) for address in addresses]
    if None in found:
        return None
    return FileSlice(
        operation.partition_path or "",
        operation.file_id or "",
        operation.base_instant_time or "",
        next((one for one in found if isinstance(one, BaseFile)), None),
        tuple(one for one in found if isinstance(one, LogFile)),
    )


def recorded_logs(recorded: RecordedSizes, operation: CompactionOperation) -> Sizes:
    """How long the logs are that an operation names, by their names, as completed writes say."""
    names = (address.rpartition("/")[2] for address in operation.delta_file_paths)
    files = (parse_file_name(name, 0) for name in names)
    partition = operation.partition_path or ""
    return {
        file.name: recorded.with_record(partition, file).recorded_bytes
        for file in files
        if isinstance(file, LogFile)
    }


def _figures(slice_: FileSlice, new_base_bytes: int) -> dict[str, float]:
    base_bytes = slice_.base_file.size_bytes if slice_.base_file else 0
    read = slice_.size_bytes // _MEGABYTE
    written = (base_bytes or new_base_bytes) // _MEGABYTE
    return {
        "TOTAL_LOG_FILES": float(len(slice_.log_files)),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(slice_.size_bytes - base_bytes),
        "TOTAL_IO_WRITE_MB": float(written),
        "TOTAL_IO_MB": float(read + written),
    }


def _size(storage: Storage, partition: str, name: str) -> int:
    entry = storage.stat(f"{partition}/{name}" if partition else name)
    return entry.size_bytes if entry else 0
