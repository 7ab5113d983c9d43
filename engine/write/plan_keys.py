"""The new keys of a plan: which of its rows bring keys that nobody else may bring as well."""

import numpy as np

from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.index.new_keys import NewKeys
from lakewarden.engine.metadata.table import RECORD_INDEX
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Replacement, WriteRequest

_NONE = np.zeros(0, np.int64)


def new_keys(
    plan: WritePlan,
    request: WriteRequest,
    index: IndexChoice,
    config: TableConfig,
    *,
    are_far: bool,
) -> NewKeys:
    """The keys that a write took for new, or puts in the place of all that was there.

    Plain inserts take every row for new without a look, as they promise. What is in one bucket is
    in one file group, and conflicts there. Where files and a record index may both be asked, a key
    that logs have deleted is known to the one and new to the other: all keys count then.
    """
    is_overwriting = request.replacement in (Replacement.TOUCHED_PARTITIONS, Replacement.TABLE)
    if index.buckets is not None or not (request.finds_keys or is_overwriting):
        return NewKeys(plan.rows, _NONE, is_global=False)
    inserted = np.concatenate([_NONE, *(group.inserts for group in plan.groups)])
    if config.has_metadata(RECORD_INDEX) and not index.kind.is_record_index:
        inserted = np.arange(len(plan.rows))
    return NewKeys(
        plan.rows,
        inserted[~plan.rows.is_delete[inserted]],
        # Whoever overwrites partitions does not look into the others.
        is_global=index.kind.is_global
        and request.replacement is not Replacement.TOUCHED_PARTITIONS,
        are_unknown=is_overwriting and are_far and not len(plan.rows),
    )
