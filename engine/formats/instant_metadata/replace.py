"""Replace commits: file groups written in the place of others, and the clustering plans before.

Clustering, insert overwrite and delete partition all complete as a replace commit. Before that,
clustering has a plan; the others have a request in which everything is null, or an empty file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.formats.instant_metadata.commit import (
    CommitMetadata,
    check_places,
    decode_commit,
    encode_json,
)
from lakewarden.engine.formats.instant_metadata.commit import encode as encode_commit
from lakewarden.engine.storage import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceCommitMetadata(CommitMetadata):
    """The content of a completed replace commit: a commit, and the file ids it replaces."""

    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringSlice:
    """A file slice to be clustered; its files are full addresses, logs newest first."""

    data_file_path: str | None = None
    delta_file_paths: tuple[str, ...] = ()
    file_id: str | None
    partition_path: str | None = None
    bootstrap_file_path: str | None = ""
    version: Int32 | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGroup:
    """Slices whose rows go together into new file groups."""

    slices: tuple[ClusteringSlice, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    num_output_file_groups: Int32 | None = 1
    extra_metadata: Mapping[str, str] | None = None
    version: Int32 | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringStrategy:
    """The Java class that executes a plan, and its parameters."""

    strategy_class_name: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    version: Int32 | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan:
    """Groups to be clustered, and how."""

    input_groups: tuple[ClusteringGroup, ...] = ()
    strategy: ClusteringStrategy | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    version: Int32 | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedReplace:
    """What a replace commit is going to do; a plan only when it is a clustering."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: Int32 | None = 1


def _check_places(metadata: ReplaceCommitMetadata, said_by: str) -> None:
    check_places(metadata, said_by)
    for partition, file_ids in metadata.partition_to_replace_file_ids.items():
        paths.check_partition(partition, said_by)
        for file_id in file_ids:
            paths.check_name(file_id, said_by)


def _check_plan(requested: RequestedReplace, said_by: str) -> None:
    if requested.clustering_plan is None:
        return
    for partition in requested.clustering_plan.missing_schedule_partitions:
        paths.check_partition(partition, said_by)
    for group in requested.clustering_plan.input_groups:
        for slice_ in group.slices:
            addresses = (slice_.data_file_path, *slice_.delta_file_paths)
            paths.check_slice(slice_.partition_path, slice_.file_id, addresses, said_by)


_METADATA = InstantCodec(ReplaceCommitMetadata, schema_text("replace"), _check_places)
_PLAN = InstantCodec(RequestedReplace, schema_text("requested_replace"), _check_plan)


def decode(payload: bytes, path: str) -> ReplaceCommitMetadata:
    """The metadata of a completed replace commit."""
    return decode_commit(_METADATA, payload, path)


encode = _METADATA.encode
decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode


def commit_content(metadata: CommitMetadata, *, as_json: bool) -> bytes:
    """The file of a commit of any kind, in the form that the table's version has."""
    if as_json:
        return encode_json(metadata)
    if isinstance(metadata, ReplaceCommitMetadata):
        return encode(metadata)
    return encode_commit(metadata)
