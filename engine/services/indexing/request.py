"""Requests for an index: which partition of the metadata table is meant, and what is refused.

The scope of keys, and indexes that come and go: an index of all keys has each of them once.

Where one is built, keys stand for one row in the whole table from then on, and they go on to do so
when it is dropped.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum

from lakewarden.engine.index.identity import SCOPE_KEY, kept_kind, recorded_identity
from lakewarden.engine.index.kinds import KeyScope
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import flag
from lakewarden.engine.metadata.entries.expressions import FUNCTIONS, IDENTITY, unknown_options
from lakewarden.engine.metadata.reading.definitions import load_definitions
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition
from lakewarden.engine.services.indexing.refusals import needs_record_index
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.virtual_keys import refuse_key_index
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.versions import index_version

_PARTITIONED_OPTION = "ispartitioned"
# Hudi calls it by both.
_EXPRESSION_OPTIONS = frozenset({"expr", "func"})
_NOT_OF_EXPRESSIONS = _EXPRESSION_OPTIONS | {_PARTITIONED_OPTION}
_FILTER_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})
# The one option of Hudi's functions that has a capital letter.
_SPELLED = {"trimstring": "trimString"}
_NAME = re.compile(r"[A-Za-z0-9_]+")


class IndexType(StrEnum):
    """The kinds of index that Hudi knows."""

    RECORD_INDEX = "record_index"
    SECONDARY_INDEX = "secondary_index"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"


_OF_EXPRESSIONS = frozenset({IndexType.COLUMN_STATS, IndexType.BLOOM_FILTERS})
_OF_WHOLE_KEYS = frozenset({IndexType.RECORD_INDEX, IndexType.BLOOM_FILTERS})
_OF_KEYS = _OF_WHOLE_KEYS | {IndexType.SECONDARY_INDEX}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """An index that a caller asks for."""

    name: str
    # None leaves it to the columns.
    index_type: str | None = None
    columns: tuple[str, ...] = ()
    # The index's own options; settings of Hudi come from the caller.
    options: Mapping[str, str] = field(default_factory=dict)
    # What the columns have in brackets behind them; all of it belongs to expressions.
    column_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedIndex:
    """A partition of the metadata table that can be built and kept true."""

    partition: str
    # Of the statistics; none for those that a new table has.
    columns: tuple[str, ...] = ()
    is_partitioned: bool = False
    # Of kinds that users name: what the file of definitions says of it.
    definition: NewDefinition | None = None

    def in_format(self, config: TableConfig) -> "WantedIndex":
        """The index in the format that indexes of a table have."""
        assert self.definition is not None
        return replace(self, definition=self.definition.of_version(index_version(config)))


def wanted_index(request: IndexRequest, config: TableConfig, known: Sequence[str]) -> WantedIndex:
    """What is to be built, and what is to be defined about it; `known` are the table's columns."""
    kind = _kind(request, config)
    # A key may be a field inside a column; an index of keys names it as the table does.
    keys = config.key_fields if kind in _OF_WHOLE_KEYS else ()
    for column in request.columns:
        if column not in known and column not in keys:
            raise _unknown_column(column, known)
    own = _options(request)
    function = _function(request, own)
    if function is not None and kind in _OF_EXPRESSIONS:
        return _expression(request, kind, function, own).in_format(config)
    _refuse_options(request, own, _NOT_OF_EXPRESSIONS)
    if kind in _OF_KEYS:
        refuse_key_index(config, kind)
    match kind:
        case IndexType.RECORD_INDEX:
            _check_key(request, config)
            is_partitioned = flag(own.get(_PARTITIONED_OPTION, "false"))
            return WantedIndex(partition=RECORD_INDEX, is_partitioned=is_partitioned)
        case IndexType.COLUMN_STATS:
            return WantedIndex(partition=COLUMN_STATS, columns=request.columns)
        case IndexType.PARTITION_STATS:
            return WantedIndex(partition=PARTITION_STATS)
        case IndexType.BLOOM_FILTERS:
            _check_filtered(request, config)
            return WantedIndex(partition=BLOOM_FILTERS)
    if function is not None:
        raise _no_expression(request, function)
    _check_secondary(request, config)
    if not config.has_metadata(RECORD_INDEX):
        raise needs_record_index(request.name, config)
    return _named(request, SECONDARY_INDEX_PREFIX, kind, IDENTITY, {}).in_format(config)


def _expression(
    request: IndexRequest, kind: IndexType, function: str, own: Mapping[str, str]
) -> WantedIndex:
    """An index of a function of a column."""
    if function not in FUNCTIONS:
        nearest = get_close_matches(function, sorted(FUNCTIONS), n=1)
        raise InvalidRequest(
            "unknown_index_function",
            what=f"An index cannot be of the function {function!r}.",
            why="It is none of those that Hudi has for indexes.",
            now=f"Did you mean {nearest[0]!r}?"
            if nearest
            else f"Use one of {', '.join(sorted(FUNCTIONS))}.",
            function=function,
        )
    if len(request.columns) != 1:
        raise InvalidRequest(
            "bad_index_columns",
            what=f"An index of {function} cannot be created on ({', '.join(request.columns)}).",
            why="An expression index is of a function of one column.",
            now=f"Name one column: USING {kind}(column) OPTIONS(expr='{function}').",
            index=request.name,
        )
    options = {name: text for name, text in own.items() if name not in _EXPRESSION_OPTIONS}
    filter_options = _FILTER_OPTIONS if kind is IndexType.BLOOM_FILTERS else frozenset()
    of_function = {name: text for name, text in options.items() if name not in filter_options}
    if unknown := unknown_options(function, of_function):
        raise _unknown_option(request, unknown[0], f"{function} does not take it")
    return _named(request, EXPRESSION_INDEX_PREFIX, kind, function, {"expr": function, **options})


def _named(
    request: IndexRequest,
    prefix: str,
    kind: IndexType,
    function: str,
    options: Mapping[str, str],
) -> WantedIndex:
    """An index that users name, with what the file of definitions says of it."""
    if not _NAME.fullmatch(request.name):
        raise InvalidRequest(
            "bad_index_name",
            what=f"An index cannot be called {request.name!r}.",
            why="Its name is part of the name of a folder.",
            now="Use letters, digits and underscores.",
            index=request.name,
        )
    partition = f"{prefix}{request.name}"
    record = {
        "indexName": partition,
        "indexType": str(kind),
        "indexFunction": function,
        "sourceFields": list(request.columns),
        "indexOptions": dict(options),
    }
    return WantedIndex(partition=partition, definition=NewDefinition(partition, record))


def _kind(request: IndexRequest, config: TableConfig) -> IndexType:
    """The kind that is named; else that which the columns, or the name, stand for."""
    if request.index_type is not None:
        return _named_kind(request.index_type)
    if set(request.columns) == set(config.key_fields) and request.columns:
        return IndexType.RECORD_INDEX
    if request.name.lower() in tuple(IndexType):
        return IndexType(request.name.lower())
    return IndexType.SECONDARY_INDEX


def _named_kind(text: str) -> IndexType:
    try:
        return IndexType(text.strip().lower())
    except ValueError:
        nearest = get_close_matches(text.lower(), list(IndexType), n=1)
        raise InvalidRequest(
            "unknown_index_type",
            what=f"Lakewarden has no index type {text!r}.",
            why=f"It can be {', '.join(IndexType)}.",
            now=f"Did you mean {str(nearest[0])!r}?" if nearest else "Name one of them.",
            index_type=text,
        ) from None


def _options(request: IndexRequest) -> dict[str, str]:
    """The options, those behind the columns too, by the names that Hudi has for them."""
    given = {**request.options, **request.column_options}
    return {_option_name(key): str(value) for key, value in given.items()}


def _option_name(key: str) -> str:
    plain = key.replace("_", "").lower()
    return _SPELLED.get(plain, plain)


def _function(request: IndexRequest, own: Mapping[str, str]) -> str | None:
    """The function that an index is of; None for the columns as they are."""
    named = {own[name].strip().lower() for name in _EXPRESSION_OPTIONS & own.keys()}
    if len(named) > 1:
        raise _unknown_option(request, "func", "expr names another function")
    function = next(iter(named), IDENTITY)
    return None if function == IDENTITY else function


def _refuse_options(request: IndexRequest, own: Mapping[str, str], known: Collection[str]) -> None:
    unknown = sorted(own.keys() - set(known))
    if unknown:
        raise _unknown_option(request, unknown[0], "it belongs to no function that is named")


def _unknown_option(request: IndexRequest, option: str, reason: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_index_option",
        what=f"The index {request.name} cannot have the option {option!r}: {reason}.",
        why="A record index takes isPartitioned, an expression index what its function takes.",
        now="Leave it out, or name the function with expr.",
        option=option,
    )


def _no_expression(request: IndexRequest, function: str) -> InvalidRequest:
    return InvalidRequest(
        "no_index_of_expressions",
        what=f"A secondary index cannot be of {function}({', '.join(request.columns)}).",
        why="It is of the values of a column.",
        now="Use USING column_stats or USING bloom_filters with OPTIONS(expr=...).",
        index=request.name,
    )


def _check_filtered(request: IndexRequest, config: TableConfig) -> None:
    """Bloom filters without an expression are of the record key."""
    if request.columns and set(request.columns) != set(config.key_fields):
        raise InvalidRequest(
            "not_the_record_key",
            what=f"Bloom filters cannot be created on {', '.join(request.columns)}.",
            why=f"Without an expression they are of the key: {', '.join(config.key_fields)}.",
            now="Name the key, or OPTIONS(expr='lower') for an index of an expression.",
            index=request.name,
        )


def _check_key(request: IndexRequest, config: TableConfig) -> None:
    if request.columns and set(request.columns) != set(config.key_fields):
        raise InvalidRequest(
            "not_the_record_key",
            what=f"A record index cannot be created on {', '.join(request.columns)}.",
            why=f"It always covers the whole record key: {', '.join(config.key_fields)}.",
            now="Name exactly these columns, or none.",
            index=request.name,
        )


def _check_secondary(request: IndexRequest, config: TableConfig) -> None:
    """A secondary index is of one column, which is not of the key."""
    keys = [column for column in request.columns if column in config.key_fields]
    if keys or len(request.columns) != 1:
        raise InvalidRequest(
            "bad_index_columns",
            what=f"An index cannot be created on ({', '.join(request.columns)}).",
            why=(
                f"{keys[0]} is part of the record key, and a record index covers exactly that key."
            )
            if keys
            else "A secondary index covers one column.",
            now="Name all columns of the record key, or one other column.",
            index=request.name,
        )


def _unknown_column(column: str, known: Sequence[str]) -> InvalidRequest:
    nearest = get_close_matches(column, known, n=1)
    return InvalidRequest(
        "unknown_column",
        what=f"The table has no column {column!r}.",
        why=f"It has {', '.join(known)}.",
        now=f"Did you mean {nearest[0]!r}?" if nearest else "Name one of them.",
        column=column,
    )


def record_scope(storage: Storage, config: TableConfig, wanted: WantedIndex) -> None:
    """Record that keys stand for one row in the whole table, before an index of them is there."""
    recorded = config.properties.get(SCOPE_KEY)
    if _is_of_all_keys(config, wanted) and recorded == KeyScope.PARTITION:
        update_properties(storage, {SCOPE_KEY: KeyScope.TABLE.value})


def keep_scope(storage: Storage, config: TableConfig, dropped: Collection[str]) -> None:
    """Record the scope of a record index before it is dropped."""
    if RECORD_INDEX not in dropped or recorded_identity(config) is not None:
        return
    definitions = load_definitions(storage, config)
    is_partitioned = any(one.is_partitioned for one in definitions if one.partition == RECORD_INDEX)
    if config.has_metadata(RECORD_INDEX) and kept_kind(config) is None and not is_partitioned:
        update_properties(storage, {SCOPE_KEY: KeyScope.TABLE.value})


def _is_of_all_keys(config: TableConfig, wanted: WantedIndex) -> bool:
    is_record_index = wanted.partition == RECORD_INDEX
    return config.is_partitioned and is_record_index and not wanted.is_partitioned
