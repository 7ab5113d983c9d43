"""Row indexes: what the indexes of a table have to learn of each data file and of its rows.

`row_indexes` says it once for a write, a service or a build, from the table's definitions; it
travels to the tasks. A task hands the rows of a new file to a `RowGatherer`, and row changes to
`value_change`. Kinds that other columns of a file tell are not here: statistics of columns are
`summaries`, places of keys `Located`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.bloom import BloomFilter, BloomOptions, build_bloom, extend_bloom
from lakewarden.engine.formats.java_text import has_java_text, java_text
from lakewarden.engine.kernel.clock import LOCAL, Zone, named_zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings
from lakewarden.engine.metadata.entries.changes import ColumnSummary, StoredFilter, ValueChange
from lakewarden.engine.metadata.entries.expressions import (
    IDENTITY,
    IndexExpression,
    unknown_options,
)
from lakewarden.engine.metadata.entries.summaries import summaries_of_rows
from lakewarden.engine.metadata.entries.value_types import value_type
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    EXPRESSION_INDEX_PREFIX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.table.schema import RECORD_KEY

EXPRESSION_ZONE = Setting(
    "lakewarden.index.expression.timezone",
    "",
    str.strip,
    "The time zone in which expression indexes see times, as the session's is to Spark; without it "
    "that of the machine. Reads go by what is kept with the table",
)
# The options of every expression index besides those of its function.
_FUNCTION_OPTION = "expr"
_FILTER_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})
_FILTER = "bloom_filters"
# Fewer distinct values of a file are held until its filter is made, whatever that can hold.
_VALUES_HELD_MAX = 1 << 17


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """An index from the values of one column to record keys."""

    partition: str
    column: str


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """Statistics or bloom filters of an expression's values, for each file."""

    partition: str
    column: str
    expression: IndexExpression
    is_filter: bool
    # Of filters: what the definition says of them.
    filter_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowIndexes:
    """The indexes of a table that are made from rows, and from the footers of base files."""

    has_filters: bool = False
    secondary: tuple[SecondaryIndex, ...] = ()
    expressions: tuple[ExpressionIndex, ...] = ()

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns of secondary indexes, each once."""
        return tuple(dict.fromkeys(one.column for one in self.secondary))

    @property
    def expression_columns(self) -> tuple[str, ...]:
        """The columns that expressions are of, each once."""
        return tuple(dict.fromkeys(one.column for one in self.expressions))


def row_indexes(
    definitions: Iterable[IndexDefinition], schema: pa.Schema, settings: Settings
) -> RowIndexes:
    """What the definitions ask for; an index that cannot be kept exactly is refused by name."""
    defined = tuple(definitions)
    zone = expression_zone(settings)
    return RowIndexes(
        has_filters=any(one.partition == BLOOM_FILTERS for one in defined),
        secondary=tuple(
            _secondary(one, schema)
            for one in defined
            if one.partition.startswith(SECONDARY_INDEX_PREFIX)
        ),
        expressions=tuple(
            _expression(one, schema, zone)
            for one in defined
            if one.partition.startswith(EXPRESSION_INDEX_PREFIX)
        ),
    )


def expression_zone(settings: Settings) -> Zone:
    """The zone in which expressions see times."""
    name = settings[EXPRESSION_ZONE]
    return named_zone(name) if name else LOCAL


def _secondary(definition: IndexDefinition, schema: pa.Schema) -> SecondaryIndex:
    column = _only_column(definition, schema)
    type_ = schema.field(column).type
    if not has_java_text(type_):
        raise unkept_index(definition, f"It is not certain how Java spells values of type {type_}.")
    return SecondaryIndex(definition.partition, column)


def _expression(definition: IndexDefinition, schema: pa.Schema, zone: Zone) -> ExpressionIndex:
    column = _only_column(definition, schema)
    is_filter = definition.index_type.lower() == _FILTER
    function = definition.function or definition.options.get(_FUNCTION_OPTION, IDENTITY)
    filter_options = {k: v for k, v in definition.options.items() if k in _FILTER_OPTIONS}
    own = {
        name: text
        for name, text in definition.options.items()
        if name != _FUNCTION_OPTION and name not in filter_options
    }
    expression = IndexExpression(function.lower(), own, zone)
    refusal = expression.refusal(schema.field(column).type)
    if refusal is None and (unknown := unknown_options(expression.function, own)):
        refusal = f"{function} has no option {unknown[0]!r}."
    if refusal is None:
        refusal = _refused_result(expression, schema.field(column).type, is_filter=is_filter)
    if refusal is not None:
        raise unkept_index(definition, refusal)
    return ExpressionIndex(definition.partition, column, expression, is_filter, filter_options)


def _refused_result(
    expression: IndexExpression, type_: pa.DataType, *, is_filter: bool
) -> str | None:
    found = expression.of(pa.array([], type_)).type
    if is_filter and not (pa.types.is_string(found) or pa.types.is_integer(found)):
        return f"It is not certain which text of a {found} Java puts into a filter."
    if not is_filter and value_type(found) is None:
        return f"Hudi keeps no statistics of type {found}."
    return None


def _only_column(definition: IndexDefinition, schema: pa.Schema) -> str:
    columns = definition.columns
    if len(columns) != 1 or columns[0] not in schema.names:
        named = ", ".join(columns) or "no column"
        raise unkept_index(definition, f"It is of {named}, which is not one column of the table.")
    return columns[0]


def unkept_index(definition: IndexDefinition, why: str) -> InvalidRequest:
    """The error for an index that no write can keep true."""
    return InvalidRequest(
        "unsupported_index",
        what=f"Lakewarden cannot maintain the index {definition.name!r} ({definition.partition}).",
        why=why,
        now=f"Drop it first: CALL drop_index(index_name => '{definition.name}', ...).",
        partition=definition.partition,
        index=definition.name,
    )


class RowGatherer:
    """Gathers what expression indexes say of one file, from its rows in parts.

    Statistics and distinct values are kept, the latter only as long as a filter tells them apart:
    memory is bounded, however many rows there are. `size` is that of filters.
    """

    def __init__(self, indexes: Sequence[ExpressionIndex], size: BloomOptions) -> None:
        self._indexes = indexes
        self._summaries: dict[str, ColumnSummary] = {}
        self._values = {one.partition: _Values(one, size) for one in indexes if one.is_filter}

    def over(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same parts, each looked at when it is taken."""
        for part in parts:
            self.add(part)
            yield part

    def add(self, rows: pa.Table) -> None:
        """Take note of some rows; a column that they lack is null in all of them."""
        for index in self._indexes if len(rows) else ():
            if index.is_filter:
                distinct = pc.drop_null(pc.unique(_results(index, rows))).cast(pa.string())
                self._values[index.partition].add(distinct)
                continue
            summary = _summary(index, rows)
            before = self._summaries.get(index.partition)
            self._summaries[index.partition] = (
                summary if before is None else _together(before, summary)
            )

    def summaries(self, size_bytes: int) -> dict[str, ColumnSummary]:
        """The statistics by index; Java notes the file's size, and twice that as unpacked."""
        return {
            partition: replace(one, packed_bytes=size_bytes, unpacked_bytes=2 * size_bytes)
            for partition, one in self._summaries.items()
        }

    def filters(self) -> dict[str, StoredFilter]:
        """The filters by index; a file without values has one that holds nothing."""
        return {partition: _stored(values.bloom()) for partition, values in self._values.items()}


class _Values:
    """The distinct values of an expression in one file.

    Beyond the number at which its filter stops growing they go into the filter at once.
    """

    def __init__(self, index: ExpressionIndex, size: BloomOptions) -> None:
        options = index.filter_options
        type_code = options.get("filtertype", size.type_code).upper()
        self._size = BloomOptions(
            "SIMPLE" if type_code == "SIMPLE" else "DYNAMIC_V0",
            int(options.get("numentries", size.entries)),
            float(options.get("fpp", size.false_positive_rate)),
            int(options.get("maxentries", size.entries_max)),
            is_fitted=size.is_fitted and "numentries" not in options,
        )
        self._held: list[pa.Array] = []
        self._count = 0
        self._bloom: BloomFilter | None = None

    def add(self, distinct: pa.StringArray) -> None:
        """Take note of values, each there once."""
        self._held.append(distinct)
        self._count += len(distinct)
        if self._count > max(_VALUES_HELD_MAX, 2 * self._size.entries_max):
            self._held = [self._distinct()]
            self._count = len(self._held[0])
            if self._count > self._size.entries_max:
                self._bloom, self._held, self._count = self.bloom(), [], 0

    def bloom(self) -> BloomFilter:
        """The filter of all values so far."""
        size, distinct = self._size, self._distinct()
        if self._bloom is not None:
            return extend_bloom(self._bloom, distinct, entries_max=size.entries_max)
        return build_bloom(
            distinct,
            type_code=size.type_code,
            entries=size.entries_for(len(distinct)),
            false_positive_rate=size.false_positive_rate,
            entries_max=size.entries_max,
        )

    def _distinct(self) -> pa.Array:
        return pc.unique(pa.chunked_array([pa.array([], pa.string()), *self._held]))


def _results(index: ExpressionIndex, rows: pa.Table) -> pa.Array:
    """The expression of all rows."""
    if index.column not in rows.column_names:
        return pa.nulls(len(rows), pa.string())
    return index.expression.of(rows.column(index.column))


def _summary(index: ExpressionIndex, rows: pa.Table) -> ColumnSummary:
    """The statistics of the expression; of moments only those near the ends are evaluated."""
    name = index.column
    if name not in rows.column_names:
        return _of_results(_results(index, rows))
    values = rows.column(name)
    chosen = index.expression.extremes(values)
    found = _of_results(index.expression.of(chosen))
    if chosen is values:
        return found
    return replace(found, value_count=len(values), null_count=values.null_count)


def _of_results(values: pa.Array) -> ColumnSummary:
    return summaries_of_rows(pa.table({"value": values}), ["value"])["value"]


def _together(one: ColumnSummary, other: ColumnSummary) -> ColumnSummary:
    bounds = (one.minimum, one.maximum, other.minimum, other.maximum)
    known = [bound for bound in bounds if bound is not None and bound.is_valid]
    counts = one.value_count + other.value_count, one.null_count + other.null_count
    if not known:
        return ColumnSummary(one.minimum, one.maximum, *counts)
    whole = _of_results(pa.array([bound.as_py() for bound in known], known[0].type))
    return ColumnSummary(whole.minimum, whole.maximum, *counts)


def _stored(bloom: BloomFilter) -> StoredFilter:
    return StoredFilter(bloom.text(), bloom.type_code)


def value_changes(
    indexes: Sequence[SecondaryIndex], before: pa.Table | None, after: pa.Table | None
) -> tuple[ValueChange, ...]:
    """What secondary indexes have to learn of rows, given as they were and as they are now.

    The rows have the record key and the indexed columns. What is the same before and after is
    omitted.
    """
    found = []
    for index in indexes:
        gone, put = _pairs(index, before), _pairs(index, after)
        if put is not None and gone is not None:
            put, gone = _apart(put, gone)
        change = ValueChange(index.partition, *_columns(put), *_columns(gone))
        if len(change.keys) or len(change.gone_keys):
            found.append(change)
    return tuple(found)


def _pairs(index: SecondaryIndex, rows: pa.Table | None) -> pa.Table | None:
    if rows is None or not len(rows):
        return None
    keys = rows.column(RECORD_KEY).combine_chunks()
    if index.column in rows.column_names:
        values = java_text(rows.column(index.column))
    else:
        values = pa.nulls(len(rows), pa.string())
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    return pa.table({"value": values, "key": keys.cast(pa.string())})


def _apart(put: pa.Table, gone: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both without the pairs that they share; pairs are compared with their nulls."""
    both = pa.concat_tables([put, gone])
    values = both.column("value").combine_chunks().dictionary_encode().indices
    keys = both.column("key").combine_chunks().dictionary_encode().indices
    codes = pc.add(
        pc.multiply(keys.cast(pa.int64()), pa.scalar(len(both) + 1, pa.int64())),
        pc.add(pc.fill_null(values, -1).cast(pa.int64()), 1),
    )
    of_put, of_gone = codes.slice(0, len(put)), codes.slice(len(put))
    return (
        put.filter(pc.invert(pc.is_in(of_put, value_set=of_gone))),
        gone.filter(pc.invert(pc.is_in(of_gone, value_set=of_put))),
    )


def _columns(pairs: pa.Table | None) -> tuple[pa.StringArray, pa.StringArray]:
    if pairs is None:
        return pa.array([], pa.string()), pa.array([], pa.string())
    return pairs.column("value").combine_chunks(), pairs.column("key").combine_chunks()
