"""What a query wants of every slice it reads; it travels to workers together with the slices.

Delete marks: records of a log that say their key is to go, instead of giving it new values.

Projection: rows as a file holds them, made into rows as the table's schema wants them.

Columns are found by name; missing ones are null, narrower types are widened, nested ones follow the
same rules inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.widening import widen_stored, with_names
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.table.config import PartitionScheme
from lakewarden.engine.table.keygen.key_scheme import KeyScheme
from lakewarden.engine.table.merge_rules import MergeRules
from lakewarden.engine.table.schema import (
    AS_STORED,
    COMMIT_TIME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    SchemaHistory,
    Sources,
)

IS_DELETED_FIELD = "_hoodie_is_deleted"
OPERATION_FIELD = "_hoodie_operation"
_DELETING_OPERATIONS = pa.array(["D", "-U"])


def marked_deleted(records: pa.Table, rules: MergeRules) -> np.ndarray:
    """Which records are deletes: by flag, by operation, or by the table's own field and marker."""
    marked = np.zeros(len(records), dtype=bool)
    names = set(records.column_names)
    if IS_DELETED_FIELD in names and pa.types.is_boolean(
        records.schema.field(IS_DELETED_FIELD).type
    ):
        marked |= _true(records.column(IS_DELETED_FIELD))
    if OPERATION_FIELD in names:
        operations = records.column(OPERATION_FIELD).cast(pa.string())
        marked |= _true(pc.is_in(operations, value_set=_DELETING_OPERATIONS))
    field, marker = rules.delete_field, rules.delete_marker
    if field is not None and marker is not None and field in names:
        marked |= _true(pc.equal(_as_text(records.column(field), field), marker))
    return marked


def _as_text(column: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InvalidRequest(
            "unsupported_delete_field",
            what=f"The delete field {field} has the type {kind}.",
            why=(
                "It is not known how Java spells such values when it compares them with the marker."
            ),
            now="Read the table with the engine that wrote it.",
            field=field,
            type=str(kind),
        )
    return column.cast(pa.string())


def _true(booleans: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(booleans.fill_null(False).to_numpy(), dtype=bool)


_IDENTITY = frozenset({RECORD_KEY, PARTITION_PATH})


@dataclass(frozen=True, slots=True)
class BlockJudge:
    """Which log blocks count; only version 6 mixes those of failed writes into live files."""

    completed: frozenset[str] | None = None
    first_active: str = ""
    as_of: str | None = None
    # Appending to a file, as version 6 does, can leave torn blocks between good ones.
    skips_corrupt: bool = False

    def is_valid(self, instant: str) -> bool:
        if self.as_of is not None and instant > self.as_of:
            return False
        return self.completed is None or instant < self.first_active or instant in self.completed


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What a query wants of every slice."""

    # All columns of the table in the reader's types, meta columns first.
    schema: pa.Schema
    columns: tuple[str, ...]
    predicate: Predicate | None
    rules: MergeRules
    partitions: PartitionScheme
    # How keys are made of the columns where files store none; None where they do.
    virtual_keys: KeyScheme | None
    drops_partition_columns: bool
    blocks: BlockJudge = field(default_factory=BlockJudge)
    history: SchemaHistory = field(default_factory=SchemaHistory)
    # Only rows that these instants wrote; all rows without it.
    commit_times: frozenset[str] | None = None
    # The slices to read instead where logs turn out to hold records of only some columns.
    whole_slices: Mapping[FileGroupId, FileSlice] = field(default_factory=dict)
    # Column defaults other than null; merging by IGNORE_DEFAULTS looks at them.
    defaults: Mapping[str, object] = field(default_factory=dict)
    # The column that is the same as the record key: merged rows get it from there.
    key_column: str | None = None
    # The record keys that rows of the answer can have, distinct; None where any may.
    keys: pa.StringArray | None = None

    @property
    def output_schema(self) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in self.columns])

    def wanted(self) -> set[str]:
        """The columns a slice without logs has to give."""
        names = set(self.columns)
        if self.predicate is not None:
            names.update(self.predicate.columns)
        if self.commit_times is not None:
            names.add(COMMIT_TIME)
        names |= self._made_of(names)
        # A table without columns would not know how many rows it has.
        return names or {self._any_stored()}

    def _made_of(self, names: set[str]) -> set[str]:
        """The columns that the record key is made of, if it is wanted and not stored."""
        if self.virtual_keys is None or RECORD_KEY not in names:
            return set()
        return set(self.virtual_keys.columns)

    def _any_stored(self) -> str:
        names: list[str] = self.schema.names
        own = [name for name in names if name not in META_COLUMNS]
        return names[0] if self.virtual_keys is None or not own else own[0]

    @property
    def stored(self) -> frozenset[str]:
        """The columns that the files hold as they are shown."""
        derived = {field.name for field in self.partitions.fields}
        return frozenset(self.schema.names) - derived - self.unfilled

    @property
    def unfilled(self) -> frozenset[str]:
        """The columns of rows' identity that files leave empty."""
        return frozenset() if self.virtual_keys is None else _IDENTITY

    def wanted_for_merging(self) -> set[str]:
        """The columns that deciding between two records needs besides."""
        names = self.wanted() - {self.key_column} | set(self.rules.ordering_names)
        names.add(RECORD_KEY)
        names |= self._made_of(names)
        names.update(
            name
            for name in (self.rules.delete_field, IS_DELETED_FIELD, OPERATION_FIELD)
            if name is not None and name in self.schema.names
        )
        return names


def project(
    rows: pa.Table,
    target: pa.Schema,
    path: str,
    sources: Sources = AS_STORED,
    *,
    keep_dictionaries: bool = False,
) -> pa.Table:
    """The rows in the target schema; `sources` tells where the file has the columns.

    Columns of dictionaries are written out, unless they may stay.
    """
    if not sources and rows.schema.equals(target):
        return rows
    if keep_dictionaries:
        target = pa.schema([_as_kept(rows, field, sources.of(field.name)) for field in target])
    columns = [_column(rows, field, sources, path) for field in target]
    return pa.table(columns, schema=target)


def _as_kept(rows: pa.Table, field: pa.Field, source: str | None) -> pa.Field:
    """The field as a dictionary if the rows have one of its values."""
    if source is None or source not in rows.schema.names:
        return field
    type_ = rows.schema.field(source).type
    is_kept = pa.types.is_dictionary(type_) and type_.value_type == field.type
    return field.with_type(type_) if is_kept else field


def _column(rows: pa.Table, field: pa.Field, sources: Sources, path: str) -> pa.ChunkedArray:
    source = sources.of(field.name)
    if source is None or source not in rows.schema.names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    column = rows.column(source)
    inside = sources.inside.get(field.name)
    if inside is not None:
        column = with_names(column, inside.renamed(column.type))
    if column.type == field.type:
        return column
    try:
        chunks = [widen_stored(chunk, field.type) for chunk in column.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptTable(
            "unreadable_column",
            what=f"Lakewarden cannot read column {field.name!r} of {path} as {field.type}.",
            why=f"The file holds {column.type}: {str(error).splitlines()[0]}.",
            now="Check recent writes: this file does not match the table's schema.",
            path=path,
            column=field.name,
        ) from None
    return pa.chunked_array(chunks, type=field.type)
