"""Lookups: the rows with given record keys, read from the file groups that can hold them."""

from collections.abc import Sequence

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import Condition, Filter, check_columns
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import RECORD_KEY


def plan_lookup(
    state: Snapshot,
    keys: Sequence[object],
    columns: Sequence[str] | None = None,
    by: str | None = None,
) -> Scan:
    """The scan for rows with the given record keys, or with the given values of a column."""
    if by is not None:
        check_columns([by], state.reader_schema())
        return plan_query(state, Query(columns=columns, filter=_value_filter(keys, by)))
    wanted = _texts(keys)
    return plan_query(state, Query(columns=columns, filter=[(RECORD_KEY, "in", wanted)]))


def _value_filter(values: Sequence[object], column: str) -> Filter:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidRequest(
            "bad_keys",
            what="The values of a lookup must be a list.",
            why="Each row with one of them is looked up.",
            now=f"For example: table.lookup(['Oslo'], by={column!r}).",
        )
    known = [value for value in values if value is not None]
    groups: list[list[Condition]] = [[(column, "in", known)]]
    if len(known) < len(values):
        groups.append([(column, "is null", None)])
    return groups


def _texts(keys: Sequence[object]) -> list[str]:
    if isinstance(keys, str) or not all(isinstance(key, (str, int)) for key in keys):
        raise InvalidRequest(
            "bad_keys",
            what="The keys of a lookup must be a list of record keys.",
            why="A record key is text; composite keys are spelled 'field1:value1,field2:value2'.",
            now="For example: table.lookup(['order-17', 'order-18']).",
        )
    return sorted({str(key) for key in keys})
