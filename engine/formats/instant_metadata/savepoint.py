"""Savepoints: the files that no clean may delete, so that the table can be taken back to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.storage import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointPartition:
    """The protected files of one partition, by name; logs of later instants may be among them."""

    partition_path: str
    savepoint_data_file: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata:
    """The content of a completed savepoint; `savepointed_at` is in epoch milliseconds."""

    savepointed_by: str = ""
    savepointed_at: int
    comments: str = ""
    partition_metadata: Mapping[str, SavepointPartition] = field(default_factory=dict)
    version: Int32 | None = 1


def _check_places(metadata: SavepointMetadata, said_by: str) -> None:
    for key, partition in metadata.partition_metadata.items():
        paths.check_partition(key, said_by)
        paths.check_partition(partition.partition_path, said_by)
        for name in partition.savepoint_data_file:
            paths.check_data_file(name, said_by)


_METADATA = InstantCodec(SavepointMetadata, schema_text("savepoint"), _check_places)

decode = _METADATA.decode
encode = _METADATA.encode
