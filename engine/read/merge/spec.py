"""What a query wants of every slice it reads; it travels to workers together with the slices."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.read.merge.delete_marks import IS_DELETED_FIELD, OPERATION_FIELD
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.table.keygen.key_scheme import KeyScheme
from lakewarden.engine.table.merge_rules import MergeRules
from lakewarden.engine.table.partitions import PartitionScheme
from lakewarden.engine.table.schema import (
    COMMIT_TIME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
)
from lakewarden.engine.table.schema_history import SchemaHistory

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
