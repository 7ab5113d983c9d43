"""Upkeep: indexes and the metadata table, planned, built, called off and dropped."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lakewarden import Table
from lakewarden.engine.services.indexing.request import IndexRequest
from lakewarden.engine.table.versions import NEWEST
from tests.all_kinds import BLOOM, BY_DAY, BY_LOW, BY_N, BY_NAME, DAY_FORMAT
from tests.histories.operation import Call
from tests.histories.table_model import Past
from tests.histories.tables import PARTITIONED_RECORD_INDEX, TableKind

# What is asked for, by the partition of the metadata table.
ASKED: Mapping[str, Callable[[TableKind], IndexRequest]] = {
    "record_index": lambda kind: IndexRequest(
        name="record_index",
        index_type="record_index",
        columns=tuple(kind.shown(("id",))),
        options=({"isPartitioned": "true"} if kind.is_partitioned and not kind.is_global else {}),
    ),
    "column_stats": lambda kind: IndexRequest(
        name="column_stats", index_type="column_stats", columns=("v", "name", "d")
    ),
    "partition_stats": lambda kind: IndexRequest(
        name="partition_stats", index_type="partition_stats"
    ),
    BLOOM: lambda kind: IndexRequest(name=BLOOM, index_type=BLOOM),
    BY_NAME: lambda kind: IndexRequest(
        name="by_name", index_type="secondary_index", columns=("name",)
    ),
    BY_N: lambda kind: IndexRequest(name="by_n", index_type="secondary_index", columns=("n",)),
    BY_DAY: lambda kind: IndexRequest(
        name="by_day",
        index_type="column_stats",
        columns=("ts",),
        options={"expr": "from_unixtime", "format": DAY_FORMAT},
    ),
    BY_LOW: lambda kind: IndexRequest(
        name="by_low", index_type="bloom_filters", columns=("name",), options={"expr": "lower"}
    ),
}
PLAIN = ("record_index", "column_stats", "partition_stats")
OF_ROWS = tuple(name for name in ASKED if name not in PLAIN)
BY_VALUE = (BY_NAME, BY_N)


def _chosen(past: Past, chance: Random, partitions: Sequence[str]) -> str | None:
    """An index that the table can have; what others it needs is seen when it is asked for."""
    partition = chance.choice(partitions)
    if not past.has_metadata:
        return None
    if partition == "partition_stats" and not past.kind.is_partitioned:
        return None
    needs_once = partition in BY_VALUE
    return None if needs_once and not past.kind.has_keys_once else partition


def build_asked(table: Table, kind: TableKind, partition: str, operation: str) -> object:
    """Build an index, or only plan it; nothing where it is there, or what it needs is not."""
    asked, config = ASKED[partition](kind), table.config
    needed = {"partition_stats": "column_stats", BY_NAME: "record_index", BY_N: "record_index"}
    if config.has_metadata(partition) or not config.has_metadata(needed.get(partition, "files")):
        return None
    if partition in BY_VALUE and _is_partitioned(table):
        return None
    if config.version < NEWEST and "isPartitioned" in asked.options:
        # Version 8 has no record index for each partition.
        return None
    return table.build_index(
        asked.name, asked.columns, asked.index_type, asked.options, op=operation
    )


def _is_partitioned(table: Table) -> bool:
    """Whether the record index has one shard for each partition."""
    return any(one.is_partitioned for one in table.indexes() if one.name == "record_index")


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """An index, built from its plan to its end."""

    name: str
    partitions: tuple[str, ...]
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        partition = _chosen(past, chance, self.partitions)
        if partition is None:
            return None
        return Call(
            text=f"create {partition}",
            act=lambda table: build_asked(table, past.kind, partition, "scheduleAndExecute"),
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class DropIndex:
    """An index goes, also one that is planned or half built."""

    name: str
    partitions: tuple[str, ...]
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        partition = chance.choice(self.partitions)
        if not past.has_metadata:
            return None
        return Call(
            text=f"drop {partition}",
            act=lambda table: table.drop_index(partition, if_exists=True),
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class ScheduleIndex:
    """The plan of an index, to which writes report until somebody carries it out."""

    name: str = "schedule index"
    weight: int = 4

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        partition = _chosen(past, chance, tuple(ASKED))
        if partition is None:
            return None
        return Call(
            text=f"schedule {partition}",
            act=lambda table: build_asked(table, past.kind, partition, "schedule"),
        )


@dataclass(frozen=True, slots=True)
class RunIndexing:
    """A build is carried out, or resumed where another process has died in it."""

    name: str = "run indexing"
    weight: int = 4

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.has_metadata:
            return None
        takes_all = chance.random() < 0.4
        return Call(
            text=f"run {'all builds' if takes_all else 'the oldest build'}",
            act=lambda table: [
                table.run_indexing([one])
                for one in (table.pending_indexing() if takes_all else table.pending_indexing()[:1])
            ],
        )


@dataclass(frozen=True, slots=True)
class CancelIndexing:
    """A build is called off, planned or half done."""

    name: str = "cancel indexing"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.has_metadata:
            return None
        return Call(
            text="cancel the newest build",
            act=lambda table: [
                table.cancel(one, force=True) for one in table.pending_indexing()[-1:]
            ],
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class CreateMetadata:
    name: str = "create metadata table"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        def effect(past: Past) -> None:
            past.has_metadata = True

        if past.has_metadata:
            return None
        return Call(
            text="create metadata table",
            act=lambda table: table.create_metadata_table(),
            effect=effect,
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class DeleteMetadata:
    name: str = "delete metadata table"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        def effect(past: Past) -> None:
            past.has_metadata = False

        if not past.has_metadata:
            return None
        return Call(
            text="delete metadata table",
            act=lambda table: table.delete_metadata_table(),
            effect=effect,
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class ChangeVersion:
    """Another version of the format; indexes that have another one there go."""

    name: str = "change version"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if past.kind.index == PARTITIONED_RECORD_INDEX:
            # Version 8 has none, by which the writes find keys.
            return None
        takes_oldest = not past.kind.is_mor and not past.kind.is_captured
        wanted = chance.choice((6, 8, 9) if takes_oldest else (8, 9))

        def act(table: Table) -> object:
            version = table.config.version
            table.change_version(wanted if wanted != version else 9 if version < 9 else 8)
            return bool(table.config.metadata_partitions)

        def learns(past: Past, answer: object) -> None:
            past.has_metadata = bool(answer)

        return Call(text=f"change version {wanted}", act=act, learns=learns, is_repeated=True)


@dataclass(frozen=True, slots=True)
class SetIndex:
    """Another index that takes the same rows for one row."""

    name: str = "set index"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        others = {
            "SIMPLE": "BLOOM",
            "BLOOM": "SIMPLE",
            "GLOBAL_SIMPLE": "GLOBAL_BLOOM",
            "GLOBAL_BLOOM": "GLOBAL_SIMPLE",
        }
        index = others.get(past.kind.index)
        if index is None:
            return None

        def effect(past: Past) -> None:
            past.kind = replace(past.kind, index=index)

        return Call(
            text=f"set {index}",
            act=lambda table: table.set_index(index),
            effect=effect,
            is_repeated=True,
        )
