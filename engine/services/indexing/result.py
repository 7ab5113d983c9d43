"""What has become of an index."""

from dataclasses import dataclass

from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.indexing.index_views import IndexState


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexBuilt(Shown):
    """An index after a build, or as it would be after one."""

    name: str
    partition: str
    state: IndexState
    # The newest write that it knows of.
    indexed_up_to: str | None
    # None where nothing was built.
    records_count: int | None
    file_groups_count: int
    is_changed: bool
    message: str
    # The build's instant, and the newest write that it had caught up with.
    instant: str | None = None
    caught_up_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexSet(Shown):
    """The index by which all writes find keys from now on, or would."""

    index: str
    # Of a bucket index.
    buckets_count: int | None
    is_changed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexDropped(Shown):
    """An index that is gone, or would be."""

    name: str
    # None where there is no such index.
    partition: str | None
    freed_bytes: int
    is_changed: bool
    message: str
