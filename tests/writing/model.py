"""A plain model of a table: what its rows must be after any sequence of writes.

It knows nothing of files. Each write is a value that can be applied to the model, to a table of
ours, or be put into words for Java, so that all three can be compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.float64()),
        ("name", pa.string()),
    ]
)
PARTITIONS = ("a", "b", "c")

Kind = Literal[
    "upsert", "insert", "bulk_insert", "delete", "overwrite_partitions", "delete_partitions"
]
ModelRow = dict[str, object]
Key = tuple[str, str]


@dataclass(frozen=True)
class Write:
    """One write: rows, or for `delete_partitions` the partitions."""

    kind: Kind
    rows: tuple[ModelRow, ...] = ()
    partitions: tuple[str, ...] = ()

    def table(self) -> pa.Table:
        """The rows in two pieces, as tables that were read often are."""
        whole = pa.Table.from_pylist(list(self.rows), schema=SCHEMA)
        half = len(whole) // 2
        return pa.concat_tables([whole.slice(0, half), whole.slice(half)])


@dataclass
class Model:
    """The rows of a table by partition and key."""

    is_event_time: bool
    is_partitioned: bool = True
    rows: dict[Key, ModelRow] = field(default_factory=dict)

    def apply(self, write: Write) -> None:
        match write.kind:
            case "upsert" | "insert" | "bulk_insert":
                for row in write.rows:
                    self._put(row)
            case "delete":
                for row in write.rows:
                    self.rows.pop(self.key(row), None)
            case "overwrite_partitions":
                self._drop({self.key(row)[0] for row in write.rows})
                for row in write.rows:
                    self._put(row)
            case "delete_partitions":
                self._drop(set(write.partitions))

    def key(self, row: ModelRow) -> Key:
        return (str(row["p"]) if self.is_partitioned else "", str(row["id"]))

    def contents(self) -> list[ModelRow]:
        """The rows, ordered by key and partition."""
        return sorted(self.rows.values(), key=lambda row: (str(row["id"]), str(row["p"])))

    def _put(self, row: ModelRow) -> None:
        old = self.rows.get(self.key(row))
        if self.is_event_time and old is not None and int(str(old["ts"])) > int(str(row["ts"])):
            return
        self.rows[self.key(row)] = row

    def _drop(self, partitions: set[str]) -> None:
        for key in [key for key in self.rows if key[0] in partitions]:
            del self.rows[key]


def contents_of(table: pa.Table) -> list[ModelRow]:
    """The rows of a read in the form of `Model.contents`."""
    rows = table.select(SCHEMA.names).to_pylist()
    return sorted(rows, key=lambda row: (str(row["id"]), str(row["p"])))


class Story:
    """A random sequence of writes that makes sense, the same one for the same seed.

    Ordering values grow, with a share of latecomers. A key that was deleted comes back with a
    larger value only: to Java, which plays these stories, too, a base file that still has the key
    takes part in the decision.
    """

    def __init__(self, seed: int, model: Model, *, kinds: Sequence[Kind], keys: int = 40) -> None:
        self.model = model
        self._random = Random(seed)
        self._kinds = kinds
        self._keys = keys
        self._step = 0
        self._fresh = 0

    def writes(self, count: int) -> Iterator[Write]:
        """The next writes; each is applied to the model when it is handed out."""
        for _ in range(count):
            write = self.next()
            self.model.apply(write)
            yield write

    def next(self) -> Write:
        return self.write(self._random.choice(self._kinds))

    def write(self, kind: Kind) -> Write:
        """A write of this kind that the model could have next."""
        self._step += 1
        match kind:
            case "insert" | "bulk_insert":
                return Write(kind, tuple(self._new_rows()))
            case "delete":
                return Write(kind, tuple(self._chosen(self._random.randint(0, 6))))
            case "delete_partitions":
                return Write(kind, partitions=(self._random.choice(PARTITIONS),))
            case "overwrite_partitions":
                partition = self._random.choice(PARTITIONS)
                return Write(kind, tuple(self._row(f"o{n}", partition) for n in range(4)))
        return Write(kind, tuple(self._upserts()))

    def _upserts(self) -> Iterator[ModelRow]:
        for place in self._random.sample(range(self._keys), self._random.randint(0, 12)):
            row = self._row(f"k{place:03d}", PARTITIONS[place % len(PARTITIONS)])
            live = self.model.rows.get(self.model.key(row))
            if live is not None and self._random.random() < 0.2:
                row["ts"] = max(int(str(live["ts"])) - 500, 0)
            yield row

    def _new_rows(self) -> Iterator[ModelRow]:
        for _ in range(self._random.randint(0, 5)):
            self._fresh += 1
            yield self._row(f"n{self._fresh:04d}", self._random.choice(PARTITIONS))

    def _chosen(self, count: int) -> Iterator[ModelRow]:
        live = sorted(self.model.rows)
        for key in self._random.sample(live, min(count, len(live))):
            yield dict(self.model.rows[key])

    def _row(self, key: str, partition: str) -> ModelRow:
        number = self._random.randint(0, 999)
        name = None if number % 7 == 0 else f"s{self._step} n{number}"
        return {
            "id": key,
            "p": partition,
            "ts": self._step * 1000 + number,
            "v": number / 8,
            "name": name,
        }
