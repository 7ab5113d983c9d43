"""Savepoints: the files that no clean may delete, so that the table can be taken back to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.payloads.binding import Int32
from lakewarden.engine.formats.payloads.codec import Codec, schema_text


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


_METADATA = Codec(SavepointMetadata, schema_text("savepoint"))

decode = _METADATA.decode
encode = _METADATA.encode
