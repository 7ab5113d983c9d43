"""IndexExpression pruning: file groups that an expression index excludes.

An expression index has, of each file, the bounds of a function of a column, or a bloom filter of
its values. It serves the same function of the same column with the same options, in the same time
zone, and no other: the filter of `lower` says nothing of `upper`. Files never change, so that it
serves every moment of the table; a file without an entry is read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache

import pyarrow as pa

from lakewarden.engine.kernel.clock import LOCAL, UTC, Zone, named_zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.expressions import IndexExpression
from lakewarden.engine.metadata.entries.row_indexes import EXPRESSION_ZONE
from lakewarden.engine.metadata.reading.column_stats import ColumnRange, ColumnRanges, column_ranges
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.table import BLOOM_FILTERS, EXPRESSION_INDEX_PREFIX
from lakewarden.engine.read.conditions.needs import Need, Needs, Term
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.read.query.answer import Scan
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
        asked = _asked(read, definition)
        if definition.index_type == BLOOM_FILTERS:
            return _by_filters(read, scan, definition, asked)
        return _by_bounds(read, scan, definition, asked)
    except NotUsable as reason:
        return not_asked(scan, definition.name, str(reason))


def _concerns(needs: Needs, column: str) -> bool:
    return any(
        (subject.column if isinstance(subject, Term) else subject) == column
        for group in needs
        for subject, _, _ in group
    )


def _asked(read: ReadOf, definition: IndexDefinition) -> Needs:
    """What the filter asks of the index's values, in every alternative, under its column's name."""
    column = definition.columns[0]
    kept = kept_settings(read.state.config.properties).get(EXPRESSION_ZONE.key, "").strip()
    expression = _expression(read, definition, kept)
    found: list[tuple[Need, ...]] = []
    for group in read.needs:
        own = [need for need in group if isinstance(need[0], Term) and _is_of(need[0], definition)]
        for term, _, _ in own:
            assert isinstance(term, Term)
            if term.zone is not None and not _have_same_times(term.zone, kept):
                where = kept or "the zone of this machine"
                raise NotUsable(f"it sees times in {where}, and the filter in {term.zone}")
        about = [(column, operator, value) for _, operator, value in own]
        plain = [need for need in group if need[0] == column]
        found += implied(expression, plain, read.schema.field(column).type, about)
    if not all(found):
        options = ", ".join(f"{key}={text}" for key, text in _options_of(definition).items())
        said = f"{definition.function}({column})" + (f" {options}" if options else "")
        raise NotUsable(f"it is of {said}, and the filter is not")
    return tuple(found)


def _expression(read: ReadOf, definition: IndexDefinition, zone: str) -> IndexExpression | None:
    """The function, if it is certain what it makes of values of the column.

    Of moments only in UTC: the rules of other zones change, and Java may have had older ones.
    """
    found = IndexExpression(definition.function.lower(), _options_of(definition))
    type_ = read.schema.field(definition.columns[0]).type
    if found.refusal(type_) or pa.types.is_floating(type_):
        return None
    has_zone = found.function == "from_unixtime" or (pa.types.is_timestamp(type_) and type_.tz)
    return None if has_zone and not _have_same_times("UTC", zone) else found


def implied(
    expression: IndexExpression | None,
    plain: Sequence[Need],
    type_: pa.DataType,
    about: Sequence[Need],
) -> list[tuple[Need, ...]]:
    """Alternatives of what results have to fulfil, from conditions on the values themselves.

    `about` is what is known of the results already. Texts of years beyond four digits begin with a
    plus sign and come before all others; those of years before the first look like later ones, so
    that no upper bound of texts is of use.
    """
    found: list[Need] = list(about)
    has_texts = False
    for name, operator, value in plain if expression is not None else ():
        assert expression is not None
        listed = value if isinstance(value, list | tuple | set | frozenset) else [value]
        scalars = [exact_scalar(one, type_) for one in listed]
        known = [one.as_py() for one in scalars if one is not None and one.is_valid]
        if len(known) < len(listed):
            continue
        values = pa.array(known, type_)
        results, has_order = expression.of(values).to_pylist(), expression.keeps_order(values)
        is_text = expression.makes_text_of_moments
        if operator in ("=", "==", "in"):
            found.append((name, "in", results))
        elif operator in (">", ">=") and has_order:
            found.append((name, ">=", results[0]))
            has_texts = has_texts or is_text
        elif operator in ("<", "<=") and has_order and not is_text:
            found.append((name, "<=", results[0]))
    if not has_texts:
        return [tuple(found)]
    others = [need for need in found if need[1] != ">="]
    return [tuple(found), (*others, (plain[0][0], "<", "0"))]


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


def _by_filters(read: ReadOf, scan: Scan, definition: IndexDefinition, asked: Needs) -> Scan:
    values = wanted_values(asked, definition.columns[0])
    if values is None or not all(isinstance(value, str) for value in values):
        raise NotUsable("the filter does not say which texts the expression has to have")
    wanted = pa.array(sorted(set(map(str, values))), pa.string())
    excluded = ruled_out_files(read.state, scan.slices, wanted, definition.partition)
    return skipping(scan, definition.name, lambda one: one.key not in excluded)


def _by_bounds(read: ReadOf, scan: Scan, definition: IndexDefinition, asked: Needs) -> Scan:
    column = definition.columns[0]
    partitions = sorted({slice_.partition for slice_ in scan.slices})
    index = read.state.metadata.partition(definition.partition)
    ranges = column_ranges(index, [column], partitions)
    type_ = _type_of(ranges)
    if type_ is None:
        return skipping(scan, definition.name, lambda _: True)
    schema = pa.schema([(column, type_)])
    predicate = bind_filter([_of_type(group, type_) for group in asked], schema)
    assert predicate is not None
    kept, _ = prune_slices(scan.slices, ranges, schema, predicate)
    keys = {slice_.key for slice_ in kept}
    return skipping(scan, definition.name, lambda one: one.key in keys)


def _of_type(group: Sequence[Need], type_: pa.DataType) -> list[tuple[str, str, object]]:
    """Conditions with their values in the type that the index has."""
    found: list[tuple[str, str, object]] = []
    for subject, operator, value in group:
        if operator == "in" and isinstance(value, list):
            typed: object = [_typed(one, type_) for one in value]
        else:
            typed = None if value is None else _typed(value, type_)
        found.append((str(subject), operator, typed))
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
