"""Planned slices: file slices as the plans of compaction and log compaction name them, and back."""

from lakewarden.engine.formats.payloads.compaction import CompactionOperation
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.view.file_names import BaseFile, LogFile, parse_file_name
from lakewarden.engine.view.slices import FileSlice

_MEGABYTE = 1 << 20
# What Java reckons for a base file that is not there yet.
_NEW_BASE_MEGABYTES = 120.0


def operation_of(slice_: FileSlice) -> CompactionOperation:
    """A slice as a plan names it: by bare file names, with the figures that Java gives."""
    base = slice_.base_file
    log_bytes = sum(log.size_bytes for log in slice_.log_files)
    read = log_bytes // _MEGABYTE + (base.size_bytes // _MEGABYTE if base else 0)
    written = float(base.size_bytes // _MEGABYTE) if base else _NEW_BASE_MEGABYTES
    return CompactionOperation(
        base_instant_time=slice_.base_instant,
        delta_file_paths=tuple(log.name for log in slice_.log_files),
        data_file_path=base.name if base else None,
        file_id=slice_.file_id,
        partition_path=slice_.partition,
        metrics={
            "TOTAL_LOG_FILES": float(len(slice_.log_files)),
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_LOG_FILES_SIZE": float(log_bytes),
            "TOTAL_IO_WRITE_MB": written,
            "TOTAL_IO_MB": read + written,
        },
    )


def slice_of(storage: Storage, operation: CompactionOperation) -> FileSlice:
    """The slice that an operation of a plan names; a file that is gone has no bytes."""
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
        tuple(file for file in files if isinstance(file, LogFile)),
    )


def _size(storage: Storage, partition: str, name: str) -> int:
    entry = storage.stat(f"{partition}/{name}" if partition else name)
    return entry.size_bytes if entry else 0
