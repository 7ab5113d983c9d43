"""Index builds: which partitions of the metadata table shall be, or have been, built."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.storage import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPartition:
    """One partition of the metadata table, and the data instant up to which it is built."""

    version: Int32 | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """The content of a requested index build."""

    version: Int32 | None = 1
    index_partition_infos: tuple[IndexPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMetadata:
    """The content of a completed index build."""

    version: Int32 | None = 1
    operation_type: str | None = None
    index_partition_infos: tuple[IndexPartition, ...] = ()


def _check_places(content: IndexPlan | IndexMetadata, said_by: str) -> None:
    for one in content.index_partition_infos:
        if one.metadata_partition_path:
            paths.check_metadata_partition(one.metadata_partition_path, said_by)


_PLAN = InstantCodec(IndexPlan, schema_text("indexing_plan"), _check_places)
_METADATA = InstantCodec(IndexMetadata, schema_text("indexing"), _check_places)

decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode
decode = _METADATA.decode
encode = _METADATA.encode
