"""Shapes: the kinds of tables that writing has to work on, and how to make one of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from lakewarden import Table
from tests.writing.model import SCHEMA, Model, Write

PARTITIONED_RECORD_INDEX = "RECORD_LEVEL_INDEX"
INDEXES = (
    "SIMPLE",
    "GLOBAL_SIMPLE",
    "BLOOM",
    "GLOBAL_BLOOM",
    "RECORD_INDEX",
    PARTITIONED_RECORD_INDEX,
    "BUCKET",
)


@dataclass(frozen=True)
class Shape:
    """What distinguishes one table from another."""

    type: str = "cow"
    is_partitioned: bool = True
    is_event_time: bool = True
    has_metadata: bool = True
    index: str = "SIMPLE"

    def __str__(self) -> str:
        words = (
            self.type,
            "partitioned" if self.is_partitioned else "flat",
            "event" if self.is_event_time else "commit",
            "metadata" if self.has_metadata else "listing",
            self.index.lower(),
        )
        return "-".join(words)

    @property
    def is_possible(self) -> bool:
        """A record index lives in the metadata table, and one for each partition needs some."""
        if self.index == PARTITIONED_RECORD_INDEX and not self.is_partitioned:
            return False
        return self.has_metadata or "RECORD" not in self.index

    def model(self) -> Model:
        return Model(self.is_event_time, self.is_partitioned)

    def create(
        self, path: str, properties: Mapping[str, object] | None = None, **arguments: object
    ) -> Table:
        """An empty table of this shape, with further properties."""
        properties = {
            **(properties or {}),
            "hoodie.metadata.enable": str(self.has_metadata).lower(),
            "hoodie.bucket.index.num.buckets": "2",
        }
        return Table.create(
            path,
            SCHEMA,
            key=["id"],
            partition=["p"] if self.is_partitioned else [],
            ordering=["ts"],
            type=self.type,
            merge_mode="event_time" if self.is_event_time else "commit_time",
            index=self.index,
            properties=properties,
            **arguments,
        )


def all_shapes() -> tuple[Shape, ...]:
    """Every combination that is possible."""
    switches = (("cow", "mor"), (True, False), (True, False), (True, False), INDEXES)
    shapes = (Shape(*values) for values in product(*switches))
    return tuple(shape for shape in shapes if shape.is_possible)


def pairwise_shapes() -> tuple[Shape, ...]:
    """Few shapes in which every two choices meet at least once; greedy, and always the same."""
    shapes = all_shapes()
    open_pairs = {pair for shape in shapes for pair in _pairs(shape)}
    chosen = []
    while open_pairs:
        best = max(shapes, key=lambda shape: len(_pairs(shape) & open_pairs))
        chosen.append(best)
        open_pairs -= _pairs(best)
    return tuple(chosen)


def _pairs(shape: Shape) -> frozenset[tuple[object, ...]]:
    choices = (
        shape.type,
        shape.is_partitioned,
        shape.is_event_time,
        shape.has_metadata,
        shape.index,
    )
    return frozenset(
        (first, choices[first], second, choices[second])
        for first in range(len(choices))
        for second in range(first + 1, len(choices))
    )


def carry_out(table: Table, write: Write) -> None:
    """Do a write of the model on a table."""
    match write.kind:
        case "upsert":
            table.upsert(write.table())
        case "insert":
            table.insert(write.table())
        case "bulk_insert":
            table.bulk_insert(write.table())
        case "delete":
            table.delete(write.table())
        case "overwrite_partitions":
            table.overwrite_partitions(write.table())
        case "delete_partitions":
            table.delete_partitions([f"p={value}" for value in write.partitions])
