"""Tables that histories are played on: what distinguishes one kind from another."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.int64()),
        ("name", pa.string()),
        ("n", pa.int32()),
    ]
)
COLUMNS = tuple(SCHEMA.names)
PARTITIONS = ("a", "b", "c")
PARTITIONED_RECORD_INDEX = "RECORD_LEVEL_INDEX"
INDEXES = (
    "SIMPLE",
    "BLOOM",
    "GLOBAL_SIMPLE",
    "GLOBAL_BLOOM",
    "RECORD_INDEX",
    PARTITIONED_RECORD_INDEX,
    "BUCKET",
)
# Everything is small, so that what happens to large tables happens to these.
SMALL = {
    "lakewarden.storage.threads": "1",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of table."""

    type: str = "cow"
    index: str = "SIMPLE"
    is_partitioned: bool = True
    is_event_time: bool = True
    has_metadata: bool = True
    # Nulls of a newer row leave what an older row has.
    is_partial: bool = False
    # Every insert makes file groups of its own.
    is_scattered: bool = False

    def __str__(self) -> str:
        words = [self.type, self.index]
        words += [field.name for field in fields(self)[2:] if getattr(self, field.name)]
        return "/".join(word.removeprefix("is_").removeprefix("has_") for word in words)

    @classmethod
    def parse(cls, text: str) -> "TableKind":
        """The kind that `str` has made a text of."""
        type_, index, *words = text.split("/")
        names = [field.name for field in fields(cls)[2:]]
        flags = {name: name.partition("_")[2] in words for name in names}
        return cls(type_, index, **flags)

    @classmethod
    def drawn(cls, chance: Random) -> "TableKind":
        """Any kind that is possible."""
        while True:
            kind = cls(
                type=chance.choice(("cow", "mor")),
                index=chance.choice(INDEXES),
                is_partitioned=chance.random() < 0.65,
                is_event_time=chance.random() < 0.5,
                has_metadata=chance.random() < 0.65,
                is_partial=chance.random() < 0.15,
                is_scattered=chance.random() < 0.4,
            )
            if kind.is_possible:
                return kind

    @property
    def is_possible(self) -> bool:
        """A record index lives in the metadata table, and one for each partition needs some."""
        if self.index == PARTITIONED_RECORD_INDEX and not self.is_partitioned:
            return False
        return self.has_metadata or "RECORD" not in self.index

    @property
    def is_mor(self) -> bool:
        return self.type == "mor"

    @property
    def is_global(self) -> bool:
        """Whether the table has each key once, and not once in each partition."""
        return self.index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")

    def create(
        self, storage: MemoryStorage, ports: Ports, properties: Mapping[str, str] | None = None
    ) -> Table:
        """An empty table of this kind."""
        given = {
            **SMALL,
            "hoodie.metadata.enable": str(self.has_metadata).lower(),
            # All kinds of global index shall mean the same.
            "hoodie.record.index.update.partition.path": "true",
        }
        if self.is_partial:
            given["hoodie.table.partial.update.mode"] = "IGNORE_DEFAULTS"
        if self.is_scattered:
            given["hoodie.parquet.small.file.limit"] = "0"
        return Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"] if self.is_partitioned else [],
            ordering=["ts"],
            type=self.type,
            merge_mode="event_time" if self.is_event_time else "commit_time",
            index=self.index,
            properties={**given, **(properties or {})},
            storage=storage,
            ports=ports,
        )
