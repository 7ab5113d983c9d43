"""Entries of the `record_index` partition: where record keys live now, and which are gone."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.octets import large_binary
from lakewarden.engine.metadata.encoding.entries import Entries
from lakewarden.engine.metadata.encoding.record_schema import RECORD_LOCATION, encode_values
from lakewarden.engine.metadata.encoding.records import EMPTY_BINARY
from lakewarden.engine.metadata.entries.changes import Located, Removed
from lakewarden.engine.metadata.reading.record_index import RECORD_COLUMN
from lakewarden.engine.metadata.reading.shards import record_shard, shard_of
from lakewarden.engine.metadata.reading.table import RECORD_INDEX

_UUID_FILE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9]{1,9})")
_UUID_ENCODING, _TEXT_ENCODING = 0, 1
_NO_NUMBER = -1


def record_entries(
    located: Iterable[Located],
    removed: Iterable[Removed],
    moment_ms: Callable[[str | None], int],
    *,
    is_partitioned: bool,
) -> Mapping[str, Entries]:
    """The entries of each shard; a global index has one for all partitions of the table.

    `moment_ms` tells when the write was that brought some keys.
    """

    def shard(partition: str) -> str:
        return record_shard(partition) if is_partitioned else shard_of(RECORD_INDEX)

    arrived: dict[str, list[Located]] = {}
    for item in located:
        arrived.setdefault(shard(item.home.partition), []).append(item)
    left: dict[str, list[Removed]] = {}
    for gone in removed:
        left.setdefault(shard(gone.partition), []).append(gone)
    return {
        name: _entries(arrived.get(name, []), left.get(name, []), moment_ms)
        for name in sorted(arrived.keys() | left.keys())
    }


def _entries(
    located: Sequence[Located],
    removed: Sequence[Removed],
    moment_ms: Callable[[str | None], int],
) -> Entries:
    """All keys of a file group have the same value, which is encoded once."""
    counts = [len(item.keys) for item in located]
    return Entries(
        _together([item.keys for item in located]),
        _values([item.home for item in located], [moment_ms(item.instant) for item in located]),
        np.repeat(np.arange(len(located)), counts),
        _together([item.keys for item in removed]),
    )


def _together(columns: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    return pa.concat_arrays([EMPTY_BINARY, *map(large_binary, columns)])


def _values(homes: Sequence[FileGroupId], moments_ms: Sequence[int]) -> pa.LargeBinaryArray:
    parts = [_file_id_parts(home.file_id) for home in homes]
    high, low, number, text, encoding = zip(*parts, strict=True) if parts else ((),) * 5
    places = pa.StructArray.from_arrays(
        [
            pa.array([home.partition for home in homes], pa.string()),
            pa.array(high, pa.int64()),
            pa.array(low, pa.int64()),
            pa.array(number, pa.int32()),
            pa.array(text, pa.string()),
            pa.array(moments_ms, pa.int64()),
            pa.array(encoding, pa.int32()),
            pa.nulls(len(homes), pa.int64()),
        ],
        names=[
            "partitionName",
            "fileIdHighBits",
            "fileIdLowBits",
            "fileIndex",
            "fileId",
            "instantTime",
            "fileIdEncoding",
            "position",
        ],
    )
    return encode_values(np.full(len(homes), RECORD_LOCATION), RECORD_COLUMN, places)


def _file_id_parts(file_id: str) -> tuple[int, int, int, str, int]:
    """High and low half of the UUID and the number behind it, or the text if it is another kind."""
    match = _UUID_FILE_ID.fullmatch(file_id)
    if match is None:
        return _NO_NUMBER, _NO_NUMBER, _NO_NUMBER, file_id, _TEXT_ENCODING
    octets = bytes.fromhex(match[1].replace("-", ""))
    high, low = (int.from_bytes(half, "big", signed=True) for half in (octets[:8], octets[8:]))
    return high, low, int(match[2]), "", _UUID_ENCODING
