"""The new keys of a plan: which of its rows have keys that no other write may bring meanwhile."""

import numpy as np

from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.index.new_keys import NewKeys, Places
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Findings, WriteRequest

_NONE = np.zeros(0, np.int64)


def new_keys(
    plan: WritePlan,
    request: WriteRequest,
    index: IndexChoice,
    config: TableConfig,
    findings: Findings,
) -> NewKeys:
    """The keys that a write took for new, deletes in vain, or has found absent.

    Plain inserts take every row for new without a look, as they promise. What comes to one bucket
    is in one file group, and conflicts there. Where files and a record index may both be asked, a
    key that logs have deleted is known to the one and new to the other: all keys count then.
    """
    places = _NONE
    if request.finds_keys:
        places = np.concatenate([_brought(plan, index, config), _deleted_in_vain(plan)])
    new = NewKeys(plan.rows, places, is_global=index.kind.is_global)
    if findings.absent is None or not len(findings.absent):
        return new
    return new.beside(findings.absent, are_global=findings.absent_everywhere)


def _brought(plan: WritePlan, index: IndexChoice, config: TableConfig) -> Places:
    if index.buckets is not None:
        return _NONE
    inserted: Places = np.concatenate([_NONE, *(group.inserts for group in plan.groups)])
    if config.has_metadata(RECORD_INDEX) and not index.kind.is_record_index:
        inserted = np.arange(len(plan.rows))
    brought: Places = inserted[~plan.rows.is_delete[inserted]]
    return brought


def _deleted_in_vain(plan: WritePlan) -> Places:
    """Deletes of keys that the table lacks: no file group shows that another write brings them."""
    is_vain = plan.rows.is_delete.copy()
    for group in plan.groups:
        is_vain[group.updates] = False
        is_vain[group.departures] = False
    return np.flatnonzero(is_vain)
