"""Lookups: the rows with given record keys, read from the file groups that can hold them."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.record_index import locate
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.read.query.prune import SkippedPart
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import RECORD_KEY


def plan_lookup(state: Snapshot, keys: Sequence[str], columns: Sequence[str] | None = None) -> Scan:
    """The scan for rows with the given record keys."""
    wanted = _texts(keys)
    scan = plan_query(state, Query(columns=columns, filter=_key_filter(state, wanted)))
    # In a table without rows there may be no shard of the index yet.
    if not state.config.has_metadata(RECORD_INDEX) or not scan.slices:
        return scan
    located = {location.file_group_id for location in locate(state.metadata.record_index(), wanted)}
    return _only(scan, located)


def _only(scan: Scan, located: set[FileGroupId]) -> Scan:
    elsewhere = tuple(
        SkippedPart(slice_.partition, slice_.file_id, "the record index has none of the keys here")
        for slice_ in scan.slices
        if slice_.key not in located
    )
    kept = tuple(slice_ for slice_ in scan.slices if slice_.key in located)
    return replace(scan, slices=kept, skipped=scan.skipped + elsewhere)


def _texts(keys: Sequence[str]) -> list[str]:
    if isinstance(keys, str) or not all(isinstance(key, (str, int)) for key in keys):
        raise InvalidRequest(
            "bad_keys",
            what="The keys of a lookup must be a list of record keys.",
            why="A record key is text; composite keys are spelled 'field1:value1,field2:value2'.",
            now="For example: table.lookup(['order-17', 'order-18']).",
        )
    return sorted({str(key) for key in keys})


def _key_filter(state: Snapshot, keys: Sequence[str]) -> pc.Expression:
    wanted = pa.array(keys, pa.string())
    if state.config.has_meta_fields:
        return pc.field(RECORD_KEY).isin(wanted)
    if len(state.config.key_fields) == 1:
        return pc.field(state.config.key_fields[0]).cast("string").isin(wanted)
    raise InvalidRequest(
        "unsupported_lookup",
        what="The table stores no record keys, and its keys have several fields.",
        why="It has hoodie.populate.meta.fields=false.",
        now="Filter by the key fields with read_arrow(filter=...).",
    )
