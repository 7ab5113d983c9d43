"""Kinds of indexes: how a write finds out which file groups already have its keys."""

from dataclasses import dataclass
from enum import Enum, StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest


class KeyScope(StrEnum):
    """Within what a key stands for one row; the values are those of the table's property."""

    PARTITION = "partition"
    TABLE = "table"


class IndexKind(Enum):
    """The index types that are implemented; the values are Hudi's names for them."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    GLOBAL_RECORD_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_INDEX = "RECORD_LEVEL_INDEX"
    BUCKET = "BUCKET"

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in all partitions, so that the table has it once."""
        return self in _GLOBAL

    @property
    def is_record_index(self) -> bool:
        return self in (IndexKind.GLOBAL_RECORD_INDEX, IndexKind.RECORD_INDEX)

    @property
    def scope(self) -> "KeyScope":
        return KeyScope.TABLE if self.is_global else KeyScope.PARTITION


_GLOBAL = frozenset(
    {IndexKind.GLOBAL_SIMPLE, IndexKind.GLOBAL_BLOOM, IndexKind.GLOBAL_RECORD_INDEX}
)
# The name that the global record index had before there was one for each partition.
_OLD_RECORD_INDEX = "RECORD_INDEX"
# Hudi's index of tests: it finds a key in its partition as long as the process lives.
_INDEX_IN_MEMORY = "INMEMORY"
_UNSUPPORTED = {
    "HBASE": "This index keeps the locations of keys in an HBase cluster.",
    "FLINK_STATE": "This index keeps the locations of keys in the state of a Flink job.",
}


@dataclass(frozen=True, slots=True)
class Buckets:
    """How a bucket index spreads keys: the fields that are hashed, and buckets per partition."""

    fields: tuple[str, ...]
    count: int
    # All fields of the record key, in its order.
    key_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """What decides which rows of a table are one row, and where a row has to be: a fact of it."""

    scope: KeyScope
    # Of a table with a bucket index.
    buckets: Buckets | None = None

    def equals_in_effect(self, other: "Identity", *, is_partitioned: bool) -> bool:
        """Whether the same rows are one row; without partitions both scopes are the same."""
        has_same_scope = self.scope is other.scope or not is_partitioned
        return has_same_scope and self.buckets == other.buckets


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """The index that one write uses.

    `moves` tells, for a global index, whether a row whose key is in another partition takes the key
    away from there; otherwise the row is written to the partition where the key is. One that is
    kept `within_partitions` looks for no key in another partition than its row's.
    """

    kind: IndexKind
    moves: bool = False
    buckets: Buckets | None = None
    # The kind that was asked for, where the table lacks what it needs.
    instead_of: IndexKind | None = None
    within_partitions: bool = False

    @property
    def is_global(self) -> bool:
        """Whether this write looks for a key in all partitions."""
        return self.kind.is_global and not self.within_partitions

    @property
    def tells_lives(self) -> bool:
        """Whether what this write finds are the keys that live, and where each of them does."""
        return self.kind.is_record_index and not self.within_partitions

    @property
    def identity(self) -> Identity:
        """What a table is whose writes use this index."""
        return Identity(self.kind.scope, self.buckets)


def parse_kind(text: str) -> IndexKind:
    """The kind that a setting names; what is not implemented is refused by name."""
    name = text.strip().upper()
    if name == _OLD_RECORD_INDEX:
        return IndexKind.GLOBAL_RECORD_INDEX
    if name == _INDEX_IN_MEMORY:
        return IndexKind.SIMPLE
    if name in _UNSUPPORTED:
        raise unsupported_index(name, _UNSUPPORTED[name])
    try:
        return IndexKind(name)
    except ValueError:
        known = ", ".join(sorted([*(kind.value for kind in IndexKind), _OLD_RECORD_INDEX]))
        raise ValueError(f"it must be one of {known}") from None


def unsupported_index(name: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_index",
        what=f"Lakewarden does not implement the index type {name}.",
        why=why,
        now="Leave hoodie.index.type out: writes then use the table's record index, or SIMPLE.",
        index=name,
    )
