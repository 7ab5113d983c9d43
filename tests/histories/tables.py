"""Tables that histories are played on: what distinguishes one kind from another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.formats.path_names import escape_path_name
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage
from tests.all_kinds import BLOOM, BY_DAY, BY_LOW, BY_N, BY_NAME, give

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.int64()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("d", pa.float64()),
    ]
)
COLUMNS = tuple(SCHEMA.names)
PARTITIONS = ("a", "b", "c")
# What stands for these, and for keys, in tables whose values are odd; a model has the plain ones.
ODD_PARTITIONS: Mapping[str, str | None] = {"a": "p=a", "b": " \u00e9/%2F", "c": None}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
PAIRS: Mapping[str, tuple[str | None, str | None]] = {
    "k0": ("a", "b"),
    "k1": ("a", None),
    "k2": ("a", ""),
    "k3": ("a:b", "b"),
    "k4": ("a,b", "b"),
    "k5": ("a", "b,c:d"),
    "k6": (None, "b"),
    "k7": ("", "b"),
}
_IDS = {pair: id_ for id_, pair in PAIRS.items()}
# Keys and partitions of tables that have numbers for them, with the texts that Java makes of them.
NUMBERS = dict(zip(PAIRS, (0.25, 1e14, -1.5, 2e-4, 1e7, 3.0, 0.1, -0.0), strict=True))
NUMBER_TEXTS = dict(
    zip(PAIRS, ("0.25", "1.0E14", "-1.5", "2.0E-4", "1.0E7", "3.0", "0.1", "-0.0"), strict=True)
)
_NUMBERED = {number: id_ for id_, number in NUMBERS.items()}
NUMBER_PARTITIONS: Mapping[str, float | None] = {"a": 0.5, "b": -0.0, "c": None}
_NUMBER_PATHS = {"a": "0.5", "b": "-0.0"}
_NUMBERED_PARTITIONS = {number: name for name, number in NUMBER_PARTITIONS.items()}
_NAMES = {odd: plain for plain, odd in ODD_PARTITIONS.items()}
NAN = "NaN"
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
    "lakewarden.index.expression.timezone": "UTC",
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
    # Partitions with names that look like something else, and a null.
    is_odd: bool = False
    # Keys of two columns, whose values hold what stands between them.
    is_composite: bool = False
    # Every kind of index from the beginning.
    is_indexed: bool = False
    # Floating point numbers for keys and partitions.
    is_floating: bool = False
    # Writes log what they change; how much of it depends on the other words.
    is_captured: bool = False
    # Table version 8.
    is_early: bool = False
    # No meta columns: keys are made of the rows' columns.
    is_virtual: bool = False
    # Table version 6.
    is_oldest: bool = False

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
                is_odd=(names := chance.random()) < 0.25,
                is_floating=names > 0.85,
                is_composite=chance.random() < 0.2,
                is_indexed=chance.random() < 0.5,
                is_captured=chance.random() < 0.4,
                is_early=chance.random() < 0.2,
                is_virtual=chance.random() < 0.2,
            )
            if kind.is_possible:
                return kind.as_oldest() if chance.random() < 0.08 else kind

    def as_oldest(self) -> "TableKind":
        """The nearest kind of version 6, which has neither logs nor a metadata table."""
        index = "SIMPLE" if "RECORD" in self.index else self.index
        nothing = {"has_metadata": False, "is_captured": False, "is_indexed": False}
        return replace(self, type="cow", index=index, is_oldest=True, is_early=False, **nothing)

    @property
    def is_possible(self) -> bool:
        """A record index lives in the metadata table, and one for each partition needs some."""
        if self.index == PARTITIONED_RECORD_INDEX and (not self.is_partitioned or self.is_early):
            return False
        # Their partition "c" is a null, which a partial update of a plain column ignores.
        takes_nulls = self.is_odd or (self.is_floating and self.is_partial)
        if takes_nulls and not self.is_partitioned:
            return False
        if self.is_floating and (self.is_odd or self.is_composite):
            return False
        if self.is_virtual and (self.is_captured or self.is_indexed or "RECORD" in self.index):
            return False
        if self.is_oldest and (
            self.is_mor or self.has_metadata or self.is_captured or self.is_early
        ):
            return False
        return self.has_metadata or not ("RECORD" in self.index or self.is_indexed)

    @property
    def is_mor(self) -> bool:
        return self.type == "mor"

    @property
    def is_global(self) -> bool:
        """Whether the table has each key once, and not once in each partition."""
        return self.index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")

    @property
    def logging_mode(self) -> str:
        if self.is_indexed:
            return "DATA_BEFORE_AFTER"
        return "OP_KEY_ONLY" if self.is_event_time else "DATA_BEFORE"

    @property
    def has_keys_once(self) -> bool:
        """Whether a key is one row of the whole table, as secondary indexes need it."""
        return self.is_global or not self.is_partitioned

    def shown(self, columns: tuple[str, ...]) -> list[str]:
        """The table's own columns for those of a model."""
        return [*columns, "q"] if self.is_composite else list(columns)

    def partition(self, name: str) -> str | float | None:
        """The value that stands for a partition of the model."""
        if self.is_floating:
            return NUMBER_PARTITIONS[name]
        return ODD_PARTITIONS[name] if self.is_odd else name

    def path(self, name: str) -> str:
        """The folder of a partition of the model."""
        value = _NUMBER_PATHS.get(name) if self.is_floating else self.partition(name)
        text = _NULL_PARTITION if value is None else str(value)
        return f"p={escape_path_name(text) if self.is_encoded else text}"

    @property
    def is_encoded(self) -> bool:
        """Whether folders are escaped; some tables with odd values are, and some not."""
        return self.is_odd and self.is_event_time

    def key(self, id_: str) -> tuple[str | float | None, str | None]:
        """The values that stand for a key of the model."""
        if self.is_floating:
            return NUMBERS[id_], None
        return PAIRS[id_] if self.is_composite else (id_, None)

    def record_key(self, id_: str) -> str:
        """The text of a key as the table has it."""
        if self.is_floating:
            return NUMBER_TEXTS[id_]
        if not self.is_composite:
            return id_
        texts = ["__null__" if one is None else one or "__empty__" for one in PAIRS[id_]]
        return f"id:{texts[0]},q:{texts[1]}"

    def key_filter(self, ids: Sequence[str]) -> list[list[tuple[str, str, object]]] | None:
        """A filter that keeps the rows of some keys; None where one of them has a null."""
        columns = ("id", "q") if self.is_composite else ("id",)
        keys = [dict(zip(columns, self.key(id_), strict=False)) for id_ in ids]
        if any(value is None for key in keys for value in key.values()):
            return None
        return [[(name, "=", value) for name, value in key.items()] for key in keys]

    def spelled(self, row: Mapping[str, object]) -> dict[str, object]:
        """A row of a model as the table has it."""
        first, second = self.key(str(row["id"]))
        number = float("nan") if row.get("d") == NAN else row.get("d")
        return {**row, "id": first, "q": second, "p": self.partition(str(row["p"])), "d": number}

    def read(self, table: pa.Table) -> list[dict[str, object]]:
        """The rows of a table as a model has them."""
        return [self._plain(row) for row in table.to_pylist()]

    def _plain(self, row: dict[str, object]) -> dict[str, object]:
        if self.is_composite:
            row["id"] = _IDS[row["id"], row.pop("q")]  # type: ignore[index]
        if self.is_odd:
            row["p"] = _NAMES[row["p"]]  # type: ignore[index]
        if self.is_floating:
            row["id"] = _NUMBERED[row["id"]]  # type: ignore[index]
            row["p"] = _NUMBERED_PARTITIONS[row["p"]]  # type: ignore[index]
        number = row.get("d")
        if number is not None and number != number:
            row["d"] = NAN
        return row

    @property
    def schema(self) -> pa.Schema:
        if self.is_floating:
            numbers = [pa.field(name, pa.float64()) for name in ("id", "p")]
            return pa.schema([*numbers, *list(SCHEMA)[len(numbers) :]])
        return SCHEMA.append(pa.field("q", pa.string())) if self.is_composite else SCHEMA

    def create(
        self, storage: MemoryStorage, ports: Ports, properties: Mapping[str, str] | None = None
    ) -> Table:
        """An empty table of this kind."""
        given = {
            **SMALL,
            "hoodie.metadata.enable": str(self.has_metadata).lower(),
            # All kinds of global index shall mean the same.
            "hoodie.record.index.update.partition.path": "true",
            "hoodie.datasource.write.partitionpath.urlencode": str(self.is_encoded).lower(),
        }
        if self.is_partial:
            given["hoodie.table.partial.update.mode"] = "IGNORE_DEFAULTS"
        if self.is_virtual:
            given["hoodie.populate.meta.fields"] = "false"
        if self.is_captured:
            given["hoodie.table.cdc.enabled"] = "true"
            given["hoodie.table.cdc.supplemental.logging.mode"] = self.logging_mode
        if self.is_early or self.is_oldest:
            given["hoodie.write.table.version"] = "8" if self.is_early else "6"
        if self.is_scattered:
            given["hoodie.parquet.small.file.limit"] = "0"
        # Where there is no record index it means nothing.
        given["lakewarden.write.inserts_to_logs"] = str(not self.is_early).lower()
        if self.is_scattered or self.is_odd:
            by_type = "BOTH" if self.is_scattered else "TIMELINE_SERVER_BASED"
            given["hoodie.write.markers.type"] = by_type
        table = Table.create(
            "",
            self.schema,
            key=["id", "q"] if self.is_composite else ["id"],
            partition=["p"] if self.is_partitioned else [],
            ordering=["ts"],
            type=self.type,
            merge_mode="event_time" if self.is_event_time else "commit_time",
            index=self.index,
            properties={**given, **(properties or {})},
            storage=storage,
            ports=ports,
        )
        if self.is_indexed:
            of_values = (BY_NAME, BY_N) if self.has_keys_once else ()
            give(table, (BLOOM, *of_values, BY_DAY, BY_LOW))
        return table
