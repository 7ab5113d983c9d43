"""Forgotten keys: what a record index has to forget when file groups are replaced."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.metadata.entries.changes import Removed
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY


def removed_index_keys(
    state: Snapshot, replaced: Sequence[FileSlice], executor: Executor
) -> tuple[Removed, ...]:
    """The keys that live in some slices, by partition; nothing is read without a record index."""
    if not replaced or not state.config.has_metadata(RECORD_INDEX):
        return ()
    scan = plan_query(state, Query(columns=[RECORD_KEY, PARTITION_PATH]))
    rows = replace(scan, slices=tuple(replaced), skipped=()).table(state.storage, executor)
    paths = rows.column(PARTITION_PATH)
    return tuple(
        Removed(_keys(rows.filter(pc.equal(paths, path))), path)
        for path in sorted(pc.unique(paths).to_pylist())
    )


def _keys(rows: pa.Table) -> pa.StringArray:
    return rows.column(RECORD_KEY).combine_chunks()
