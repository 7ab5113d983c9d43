"""Expression pruning: file groups that an expression index excludes.

An expression index has, of each file, the bounds of a function of a column, or a bloom filter of
its values. It serves the same function of the same column with the same options, in the same time
zone, and no other: the filter of `lower` says nothing of `upper`. Files never change, so that it
serves every moment of the table; a file without an entry is read.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.zones import LOCAL, UTC, Zone, named_zone
from lakewarden.engine.metadata.entries.row_indexes import EXPRESSION_ZONE
from lakewarden.engine.metadata.reading.column_range import ColumnRange
from lakewarden.engine.metadata.reading.column_stats import ColumnRanges, column_ranges
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.table import BLOOM_FILTERS, EXPRESSION_INDEX_PREFIX
from lakewarden.engine.read.conditions.needs import Need, Needs, Term
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.read.query.index_pruning import (
    NotUsable,
    ReadOf,
    exact_scalar,
    not_asked,
    ruled_out_files,
    skipping,
    wanted_values,
)
from lakewarden.engine.read.query.prune import prune_slices
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.table.config import kept_settings

# Options that name the function or shape the filter, and change no value.
_OTHER_OPTIONS = frozenset({"expr", "func", "filtertype", "numentries", "fpp", "maxentries"})
_DEFAULTS = {"from_unixtime": {"format": "yyyy-MM-dd HH:mm:ss"}}
_SAMPLE_YEARS = range(1970, 2040)


def prune_by_expressions(read: ReadOf, scan: Scan) -> Scan:
    """The scan without what expression indexes exclude, those of filters last."""
    found = [
        one
        for one in read.state.definitions
        if one.partition.startswith(EXPRESSION_INDEX_PREFIX) and len(one.columns) == 1
    ]
    for definition in sorted(found, key=lambda one: one.index_type == BLOOM_FILTERS):
        if scan.slices:
            scan = _by_index(read, scan, definition)
    return scan


def _by_index(read: ReadOf, scan: Scan, definition: IndexDefinition) -> Scan:
    if not _concerns(read.needs, definition.columns[0]):
        return scan
    try:
        unready = read.trust.unready(definition.partition)
        if unready is not None:
            raise NotUsable(unready)
        if read.state.history.versions:
            raise NotUsable("columns were renamed since it was built")
        term = _matching(read, definition)
        if definition.index_type == BLOOM_FILTERS:
            return _by_filters(read, scan, definition, term)
        return _by_bounds(read, scan, definition, term)
    except NotUsable as reason:
        return not_asked(scan, definition.name, str(reason))


def _concerns(needs: Needs, column: str) -> bool:
    return any(
        isinstance(subject, Term) and subject.column == column
        for group in needs
        for subject, _, _ in group
    )


def _matching(read: ReadOf, definition: IndexDefinition) -> Term:
    """The term of the filter that the index is of, in every alternative."""
    needs = read.needs
    terms = [
        {one for one, _, _ in group if isinstance(one, Term) and _is_of(one, definition)}
        for group in needs
    ]
    common = set.intersection(*terms) if terms else set()
    if not common:
        options = ", ".join(f"{key}={text}" for key, text in _options_of(definition).items())
        said = f"{definition.function}({definition.columns[0]})" + (
            f" {options}" if options else ""
        )
        raise NotUsable(f"it is of {said}, and the filter is not")
    term = min(common, key=repr)
    if term.zone is not None:
        kept = kept_settings(read.state.config.properties).get(EXPRESSION_ZONE.key, "").strip()
        if not _have_same_times(term.zone, kept):
            where = kept or "the zone of this machine"
            raise NotUsable(f"it sees times in {where}, and the filter in {term.zone}")
    return term


def _is_of(term: Term, definition: IndexDefinition) -> bool:
    given = _DEFAULTS.get(term.function, {}) | dict(term.options)
    return (
        term.function == definition.function.lower()
        and term.column == definition.columns[0]
        and given == _options_of(definition)
    )


def _options_of(definition: IndexDefinition) -> Mapping[str, str]:
    function = definition.function.lower()
    own = {
        key: text
        for key, text in definition.options.items()
        if key.replace("_", "").lower() not in _OTHER_OPTIONS
    }
    return _DEFAULTS.get(function, {}) | own


@cache
def _have_same_times(name: str, other: str) -> bool:
    """Whether two zones have the same wall-clock times, as far as days can tell."""
    try:
        zone, kept = _zone(name), _zone(other)
    except InvalidRequest:
        return False
    first = datetime(_SAMPLE_YEARS.start, 1, 1)
    days = range(0, 366 * len(_SAMPLE_YEARS), 7)
    moments = (UTC.epoch_ms(first + timedelta(days=day)) for day in days)
    return all(zone.wall(moment) == kept.wall(moment) for moment in moments)


def _zone(name: str) -> Zone:
    """A zone by its name; that of this machine without one."""
    if name.upper() in ("UTC", "Z", "GMT", "ETC/UTC"):
        return UTC
    return named_zone(name) if name else LOCAL


def _by_filters(read: ReadOf, scan: Scan, definition: IndexDefinition, term: Term) -> Scan:
    values = wanted_values(read.needs, term)
    if values is None or not all(isinstance(value, str) for value in values):
        raise NotUsable("the filter does not say which texts the expression has to have")
    wanted = pa.array(sorted(set(map(str, values))), pa.string())
    excluded = ruled_out_files(read.state, scan.slices, wanted, definition.partition)
    return skipping(scan, definition.name, lambda one: one.key not in excluded)


def _by_bounds(read: ReadOf, scan: Scan, definition: IndexDefinition, term: Term) -> Scan:
    partitions = sorted({slice_.partition for slice_ in scan.slices})
    index = read.state.metadata.partition(definition.partition)
    ranges = column_ranges(index, [term.column], partitions)
    type_ = _type_of(ranges)
    if type_ is None:
        return skipping(scan, definition.name, lambda _: True)
    schema = pa.schema([(term.column, type_)])
    groups = [_of_term(group, term, type_) for group in read.needs]
    predicate = bind_filter(groups, schema)
    assert predicate is not None
    kept, _ = prune_slices(scan.slices, ranges, schema, predicate)
    keys = {slice_.key for slice_ in kept}
    return skipping(scan, definition.name, lambda one: one.key in keys)


def _of_term(
    group: tuple[Need, ...], term: Term, type_: pa.DataType
) -> list[tuple[str, str, object]]:
    """What a group asks of the term, as conditions on a column of its values."""
    found: list[tuple[str, str, object]] = []
    for subject, operator, value in group:
        if subject != term:
            continue
        if operator == "in" and isinstance(value, list):
            typed: object = [_typed(one, type_) for one in value]
        else:
            typed = None if value is None else _typed(value, type_)
        found.append((term.column, operator, typed))
    return found


def _typed(value: object, type_: pa.DataType) -> object:
    scalar = exact_scalar(value, type_)
    if scalar is None:
        raise NotUsable(f"{value!r} is not of the type of its values, {type_}")
    return scalar.as_py()


def _type_of(ranges: ColumnRanges) -> pa.DataType | None:
    """The type of the expression's values; None where they differ, or there are none."""
    bounds = [
        one.minimum
        for files in ranges.values()
        for columns in files.values()
        for one in columns.values()
        if isinstance(one, ColumnRange) and one.minimum is not None
    ]
    types = {bound.type for bound in bounds}
    return types.pop() if len(types) == 1 else None
