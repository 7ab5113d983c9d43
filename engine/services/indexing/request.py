"""Requests for an index: which partition of the metadata table is meant, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import flag
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition
from lakewarden.engine.services.indexing.refusals import not_built_yet
from lakewarden.engine.table.config import TableConfig

_PARTITIONED_OPTION = "ispartitioned"
# Hudi calls it by both.
_EXPRESSION_OPTIONS = frozenset({"expr", "func"})
_IDENTITY = "identity"


class IndexType(StrEnum):
    """The kinds of index that Hudi knows."""

    RECORD_INDEX = "record_index"
    SECONDARY_INDEX = "secondary_index"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"


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


def wanted_index(request: IndexRequest, config: TableConfig, known: Sequence[str]) -> WantedIndex:
    """What is to be built; `known` are the table's columns."""
    for column in request.columns:
        if column not in known:
            raise _unknown_column(column, known)
    kind = _kind(request, config)
    own = _options(request)
    if _EXPRESSION_OPTIONS & own.keys() or request.column_options:
        _refuse_expression(request, own)
    match kind:
        case IndexType.RECORD_INDEX:
            _check_key(request, config)
            is_partitioned = flag(own.get(_PARTITIONED_OPTION, "false"))
            return WantedIndex(partition=RECORD_INDEX, is_partitioned=is_partitioned)
        case IndexType.COLUMN_STATS:
            return WantedIndex(partition=COLUMN_STATS, columns=request.columns)
        case IndexType.PARTITION_STATS:
            return WantedIndex(partition=PARTITION_STATS)
        case IndexType.SECONDARY_INDEX:
            _check_secondary(request, config)
    raise not_built_yet(request.name, kind)


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
    """The options by their names in lower case."""
    own = {key.replace("_", "").lower(): value for key, value in request.options.items()}
    unknown = sorted(own.keys() - {_PARTITIONED_OPTION} - _EXPRESSION_OPTIONS)
    if unknown:
        raise InvalidRequest(
            "unknown_index_option",
            what=f"The index {request.name} has no option {unknown[0]!r}.",
            why=(
                "It takes isPartitioned (for a record index), expr, and Hudi's settings by "
                "their full names."
            ),
            now="Leave it out.",
            option=unknown[0],
        )
    return own


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
    """What will be wrong with a secondary index once they can be built is wrong today."""
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


def _refuse_expression(request: IndexRequest, own: Mapping[str, str]) -> None:
    expressions = [own[name] for name in sorted(_EXPRESSION_OPTIONS & own.keys())]
    if request.column_options or any(one.lower() != _IDENTITY for one in expressions):
        raise not_built_yet(request.name, "expression index")


def _unknown_column(column: str, known: Sequence[str]) -> InvalidRequest:
    nearest = get_close_matches(column, known, n=1)
    return InvalidRequest(
        "unknown_column",
        what=f"The table has no column {column!r}.",
        why=f"It has {', '.join(known)}.",
        now=f"Did you mean {nearest[0]!r}?" if nearest else "Name one of them.",
        column=column,
    )
