"""Hudi's table functions of a table's state, by its names and columns, as tables of Arrow."""

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.files import (
    ALL_PARTITIONS_KEY,
    FILES_COLUMN,
    merged_sizes,
)
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.services.inspection.files.slice_view import ViewRequest, all_slices
from lakewarden.engine.services.inspection.history.history import (
    EVER,
    Recorded,
    decode_write,
    figures_of_write,
    state_word,
)
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Instant
from lakewarden.table import Table

_TIMELINE = pa.schema(
    [
        *(
            (name, pa.string())
            for name in ("Timestamp", "Action", "State", "Completion_Time", "File_Name")
        ),
        *(
            (name, pa.int64())
            for name in (
                "Total_Bytes_Written",
                "Total_Files_Updated",
                "Total_Partitions_Written",
                "Total_Records_Written",
                "Total_Updated_Records_Written",
                "Total_Write_Errors",
            )
        ),
    ]
)
_FILES = pa.schema(
    [
        *(
            (name, pa.string())
            for name in ("File_ID", "Partition_Path", "Base_Instant_Time", "Base_File_Path")
        ),
        *(
            (name, pa.int64())
            for name in (
                "Base_File_Size",
                "Log_File_Count",
                "Log_File_Size",
                "Log_File_Scheduled",
                "Log_File_Unscheduled",
            )
        ),
    ]
)
# What Hudi shows of an instant that has written nothing, and of a slice without a base file.
_NONE = -1

_FILE_INFO = pa.map_(pa.string(), pa.struct([("size", pa.int64()), ("isDeleted", pa.bool_())]))
_BOUND = pa.struct(
    [
        (f"member{number}", pa.struct([("value", type_)]))
        for number, type_ in enumerate(
            (
                pa.bool_(),
                pa.int32(),
                pa.int64(),
                pa.float32(),
                pa.float64(),
                pa.binary(),
                pa.string(),
                pa.date32(),
                pa.decimal128(30, 15),
                pa.int64(),
                pa.timestamp("us", "UTC"),
                pa.date32(),
            )
        )
    ]
)
_METADATA = pa.schema(
    [
        ("key", pa.string()),
        ("type", pa.int32()),
        (FILES_COLUMN, _FILE_INFO),
        (
            "BloomFilterMetadata",
            pa.struct(
                [
                    ("type", pa.string()),
                    ("timestamp", pa.string()),
                    ("bloomFilter", pa.binary()),
                    ("isDeleted", pa.bool_()),
                ]
            ),
        ),
        (
            "ColumnStatsMetadata",
            pa.struct(
                [
                    ("fileName", pa.string()),
                    ("columnName", pa.string()),
                    ("minValue", _BOUND),
                    ("maxValue", _BOUND),
                    ("valueCount", pa.int64()),
                    ("nullCount", pa.int64()),
                    ("totalSize", pa.int64()),
                    ("totalUncompressedSize", pa.int64()),
                    ("isDeleted", pa.bool_()),
                ]
            ),
        ),
        (
            "recordIndexMetadata",
            pa.struct(
                [
                    ("partitionName", pa.string()),
                    ("fileIdHighBits", pa.int64()),
                    ("fileIdLowBits", pa.int64()),
                    ("fileIndex", pa.int32()),
                    ("fileId", pa.string()),
                    ("instantTime", pa.int64()),
                    ("fileIdEncoding", pa.int32()),
                ]
            ),
        ),
        (
            "SecondaryIndexMetadata",
            pa.struct([("recordKey", pa.string()), ("isDeleted", pa.bool_())]),
        ),
    ]
)
# The types of records that name partitions of the table, and files.
_ALL_PARTITIONS, _FILES_OF_PARTITION = 1, 2


def hudi_relation(function: str, table: Table, argument: str) -> pa.Table:
    """The rows of a function; the argument is its second one, empty where there is none."""
    return _RELATIONS[function](table, argument)


def _timeline(table: Table, argument: str) -> pa.Table:
    if argument.lower() not in ("", "true", "false"):
        raise _bad(argument, "whether archived instants count", "'true' or 'false'")
    archived = argument.lower() == "true"
    history = table.history()
    written = {
        one.instant.key: one for one in history.completed(COMPLETED_WRITES, archived=archived)
    }
    file_name = history.timeline.active.layout.file_name
    found = sorted(
        (instant for instant, _ in history.instants(EVER, archived=archived)),
        key=lambda one: one.requested,
    )
    return pa.Table.from_pylist(
        [
            dict(zip(_TIMELINE.names, _instant(one, file_name(one), written), strict=True))
            for one in found
        ],
        _TIMELINE,
    )


def _instant(
    instant: Instant, file_name: str, written: Mapping[tuple[str, str], Recorded]
) -> tuple[object, ...]:
    start = (
        instant.requested,
        instant.action.value,
        state_word(instant),
        instant.completed,
        file_name,
    )
    if instant.key not in written:
        return (*start, *[_NONE] * (len(_TIMELINE) - len(start)))
    metadata = decode_write(written[instant.key])
    figures = figures_of_write(metadata)
    return (
        *start,
        figures.bytes_written,
        figures.files_updated,
        len(metadata.partition_to_write_stats),
        figures.records_written,
        figures.records_updated,
        figures.errors,
    )


def _file_slices(table: Table, argument: str) -> pa.Table:
    state = table.state()
    rows = []
    for slice_ in all_slices(state, ViewRequest(partitions=argument)):
        base = slice_.base_file
        named = sum(
            log.size_bytes for log in slice_.log_files if log.instant == slice_.base_instant
        )
        total = sum(log.size_bytes for log in slice_.log_files)
        row = (
            slice_.file_id,
            slice_.partition,
            slice_.base_instant,
            state.storage.uri(slice_.path(base)) if base else "",
            base.size_bytes if base else _NONE,
            len(slice_.log_files),
            total,
            named,
            total - named,
        )
        rows.append(dict(zip(_FILES.names, row, strict=True)))
    return pa.Table.from_pylist(rows, _FILES)


def _metadata(table: Table, argument: str) -> pa.Table:
    if argument:
        raise _bad(argument, "nothing more than a table", "no second argument")
    state = table.state()
    if state.metadata is None:
        return _METADATA.empty_table()
    listed = state.config.properties.get("hoodie.table.metadata.partitions", "")
    rows: list[dict[str, object]] = []
    for name in sorted(part.strip() for part in listed.split(",") if part.strip()):
        partition = state.metadata.partition(name)
        rows += _listings(partition) if name == FILES else _records(partition)
    return pa.Table.from_pylist(rows, _METADATA)


def _listings(partition: MetadataPartition) -> Iterator[dict[str, object]]:
    """A record for all partitions, and one for each: what all versions of it come to."""
    for key, sizes in sorted(merged_sizes(partition.all([FILES_COLUMN])).items()):
        kind = _ALL_PARTITIONS if key == ALL_PARTITIONS_KEY else _FILES_OF_PARTITION
        files = {name: {"size": size, "isDeleted": False} for name, size in sizes.items()}
        yield {"key": key, "type": kind, FILES_COLUMN: list(files.items())}


def _records(partition: MetadataPartition) -> Iterator[dict[str, object]]:
    columns = [name for name in _METADATA.names if name != FILES_COLUMN]
    for row in partition.all(columns).newest().values.to_pylist():
        statistics = row["ColumnStatsMetadata"]
        if statistics is not None:
            for bound in ("minValue", "maxValue"):
                statistics[bound] = _as_members(statistics[bound])
        yield row


def _as_members(bound: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """A bound with its branches numbered, as Spark shows a union of Avro; one of lists is none."""
    if bound is None:
        return None
    branches = list(bound.values())[: len(_BOUND)]
    return {f"member{number}": branch for number, branch in enumerate(branches)}


def _bad(argument: str, what: str, example: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_argument",
        what=f"The function cannot take {argument!r}.",
        why=f"It is to say {what}.",
        now=f"Write {example}.",
        argument=argument,
    )


_RELATIONS: Mapping[str, Callable[[Table, str], pa.Table]] = {
    "hudi_query_timeline": _timeline,
    "hudi_filesystem_view": _file_slices,
    "hudi_metadata": _metadata,
}
