"""Update, delete and merge change exactly the rows that match, whatever index finds them.

The judge is a plain dictionary of rows by identity: partition and key, or key alone where the index
knows keys over all partitions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.write.request import Commit
from tests.sampling import turns

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        pa.field("v", pa.int64(), nullable=False),
        ("w", pa.string()),
    ]
)
# Each index, and what is built for it.
INDEXES = {
    "SIMPLE": (),
    "BLOOM": (),
    "GLOBAL_SIMPLE": (),
    "GLOBAL_BLOOM": (),
    "RECORD_INDEX": ("record_index",),
    "RECORD_LEVEL_INDEX": (),
    "BUCKET": (),
}
GLOBAL = {"GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"}
# Types of table, and what is done to them.
PLAYED = tuple(product(("cow", "mor"), range(2)))
STEPS = 9

Row = dict[str, object]
Identity = tuple[object, ...]


class Refusal(Exception):
    """The model's: the code that the table has to refuse with."""


@dataclass
class Model:
    """A table as a dictionary, which is changed wholly or not at all."""

    is_global: bool
    is_event_time: bool
    rows: dict[Identity, Row] = field(default_factory=dict)

    def key(self, row: Row) -> Identity:
        return (row["id"],) if self.is_global else (row["id"], row["p"])

    def change(
        self, old: list[Row], new: list[Row], gone: list[Row], added: list[Row], *, lowers: str
    ) -> None:
        """Rows that become others, that go and that come; `lowers` is "refused" or "ignored"."""
        if self.is_event_time:
            is_lower = [after["ts"] < before["ts"] for before, after in zip(old, new, strict=True)]
            if any(is_lower) and lowers == "refused":
                raise Refusal("ordering_lowered")
            old = [row for row, lower in zip(old, is_lower, strict=True) if not lower]
            new = [row for row, lower in zip(new, is_lower, strict=True) if not lower]
        after = dict(self.rows)
        for row in (*old, *gone):
            del after[self.key(row)]
        written = [self.key(row) for row in (*new, *added)]
        if len(set(written)) < len(written):
            raise Refusal("repeated_keys")
        if set(written) & set(after):
            raise Refusal("key_exists")
        self.rows = after | {self.key(row): row for row in (*new, *added)}

    def put(self, row: Row) -> None:
        """A row of an upsert; with a global index, wherever its key is."""
        old = self.rows.get(self.key(row))
        if old is None or not self.is_event_time or row["ts"] >= old["ts"]:
            self.rows[self.key(row)] = row


class History:
    """One random history of a table and its model, the same for the same seed."""

    def __init__(self, kind: str, index: str, seed: int) -> None:
        self._random = Random(f"{kind} {index} {seed}")
        self._is_event_time = seed % 2 == 0
        self.storage: MemoryStorage = fresh_memory_storage()
        self.model = Model(index in GLOBAL, self._is_event_time)
        self.table = Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"],
            ordering=["ts"],
            merge_mode="event_time" if self._is_event_time else "commit_time",
            type=kind,
            index=index,
            indexes=INDEXES[index],
            properties={"hoodie.bucket.index.num.buckets": "2", "hoodie.table.name": "t"},
            storage=self.storage,
        )
        self._step = 0

    def row(self, **values: object) -> Row:
        row = {
            "id": self._random.choice("klmn"),
            "p": self._random.choice("abc"),
            "ts": self._random.randint(0, 9),
            "v": self._random.randint(0, 4),
            "w": f"step {self._step}",
        }
        return row | values

    def act(self) -> str:
        """One operation, on the table and on the model."""
        self._step += 1
        acts: dict[str, Callable[[], None]] = {
            "upsert": self._upsert,
            "delete": self._delete,
            "update_where": self._update_where,
            "move": self._move,
            "swap": self._swap,
            "delete_where": self._delete_where,
            "merge": self._merge,
        }
        name = self._random.choice(list(acts)) if self._step > 2 else "upsert"
        acts[name]()
        return name

    def _upsert(self) -> None:
        rows = {self.model.key(row): row for row in (self.row() for _ in range(6))}
        if self.model.is_global:
            rows = {
                key: row | {"p": self.model.rows.get(key, row)["p"]} for key, row in rows.items()
            }
        self.table.upsert(list(rows.values()))
        for row in rows.values():
            self.model.put(row)

    def _delete(self) -> None:
        key = self._random.choice("klmn")
        self.table.delete([key])
        self.model.rows = {at: row for at, row in self.model.rows.items() if row["id"] != key}

    def _chosen(self) -> tuple[list[tuple[str, str, object]], list[Row]]:
        column = self._random.choice(["id", "p", "v"])
        value = self.row()[column]
        rows = [row for row in self.model.rows.values() if row[column] == value]
        return [(column, "=", value)], rows

    def _update_where(self) -> None:
        filter_, old = self._chosen()
        values: Row = {"v": 7, "w": f"updated {self._step}"}
        if self._random.random() < 0.4:
            values["ts"] = self._random.randint(0, 9)
        self._changed(
            lambda: self.table.update_where(filter_, values),
            lambda: self.model.change(old, [row | values for row in old], [], [], lowers="refused"),
            {"rows_updated": len(old)},
        )

    def _move(self) -> None:
        filter_, old = self._chosen()
        target = {"p": self._random.choice("abc")}
        self._changed(
            lambda: self.table.update_where(filter_, target),
            lambda: self.model.change(old, [row | target for row in old], [], [], lowers="refused"),
            {"rows_updated": len(old), "rows_deleted": 0, "rows_inserted": 0},
        )

    def _swap(self) -> None:
        """Rows of two partitions change places."""
        old = [row for row in self.model.rows.values() if row["p"] in ("a", "b")]
        other = {"a": "b", "b": "a"}
        swapped = pc.if_else(pc.equal(pc.field("p"), "a"), "b", "a")
        self._changed(
            lambda: self.table.update_where([("p", "in", ["a", "b"])], {"p": swapped}),
            lambda: self.model.change(
                old, [row | {"p": other[str(row["p"])]} for row in old], [], [], lowers="refused"
            ),
            {"rows_updated": len(old)},
        )

    def _delete_where(self) -> None:
        filter_, gone = self._chosen()
        self._changed(
            lambda: self.table.delete_where(filter_),
            lambda: self.model.change([], [], gone, [], lowers="refused"),
            {"rows_deleted": len(gone)},
        )

    def _merge(self) -> None:
        source = [self.row() for _ in range(self._random.randint(1, 4))]
        on_match = self._random.choice(["update", "delete", "ignore", "values"])
        on_no_match = self._random.choice(["insert", "ignore"])
        values = {"v": pc.add(pc.field("v"), pc.field("source.v")), "w": pc.field("source.w")}
        selection = {
            "on_match": values if on_match == "values" else on_match,
            "on_no_match": on_no_match,
        }
        self._changed(
            lambda: self.table.merge(source, **selection),  # type: ignore[arg-type]
            lambda: self._merged(source, on_match, on_no_match),
            {},
        )

    def _merged(self, source: list[Row], on_match: str, on_no_match: str) -> None:
        newest: dict[Identity, list[Row]] = {}
        for row in source:
            own = newest.setdefault(self.model.key(row), [])
            if not own or row["ts"] >= own[0]["ts"]:
                newest[self.model.key(row)] = [row, *(one for one in own if one["ts"] == row["ts"])]
        if any(len(own) > 1 for own in newest.values()):
            raise Refusal("repeated_keys")
        theirs = {key: own[0] for key, own in newest.items()}
        old = [row for key, row in self.model.rows.items() if key in theirs]
        added = [row for key, row in theirs.items() if key not in self.model.rows]
        become = [self._become(row, theirs[self.model.key(row)], on_match) for row in old]
        self.model.change(
            [] if on_match in ("delete", "ignore") else old,
            [row for row in become if row is not None],
            old if on_match == "delete" else [],
            added if on_no_match == "insert" else [],
            lowers="ignored",
        )

    @staticmethod
    def _become(old: Row, theirs: Row, on_match: str) -> Row | None:
        if on_match == "values":
            return old | {"v": int(str(old["v"])) + int(str(theirs["v"])), "w": theirs["w"]}
        return theirs if on_match == "update" else None

    def _changed(
        self, write: Callable[[], Commit], model: Callable[[], None], reported: dict[str, int]
    ) -> None:
        """Both do it, or both refuse it by the same code."""
        code = _refused_by(model)
        if code:
            with pytest.raises(InvalidRequest) as refused:
                write()
            assert refused.value.code == code
            return
        commit = write()
        assert {name: getattr(commit, name) for name in reported} == reported

    def check(self) -> None:
        """The rows by all ways of reading, and every index."""
        expected = sorted(self.model.rows.values(), key=_order)
        for use_metadata in (True, False):
            found = self.table.read_arrow(SCHEMA.names, use_metadata=use_metadata).to_pylist()
            assert sorted(found, key=_order) == expected
        assert [
            one for one in self.table.validate() if one.finding.verdict is CheckVerdict.FAILED
        ] == []


def _refused_by(model: Callable[[], None]) -> str:
    """The code by which the model refuses what it is asked for; empty if it has done it."""
    try:
        model()
    except Refusal as refusal:
        return str(refusal)
    return ""


def _order(row: Row) -> tuple[str, str]:
    return str(row["id"]), str(row["p"])


@pytest.mark.parametrize(("index", "played"), turns(tuple(INDEXES), PLAYED), ids=str)
def test_changes_of_rows_are_those_of_a_dictionary(index: str, played: tuple[str, int]) -> None:
    kind, seed = played
    history = History(kind, index, seed)
    reported: list[str] = []
    for _ in range(STEPS):
        reported.append(history.act())
        try:
            history.check()
        except AssertionError as error:
            raise AssertionError(f"after {reported}: {error}") from error


@pytest.fixture(params=["cow", "mor"])
def made(request: pytest.FixtureRequest) -> Table:
    """A table that has the key k in two partitions."""
    table = Table.create(
        "",
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=request.param,
        properties={"hoodie.table.name": "t"},
        storage=fresh_memory_storage(),
    )
    table.upsert([_row("a", 1), _row("b", 2)])
    return table


def _row(partition: str, v: int, ts: int = 1) -> Row:
    return {"id": "k", "p": partition, "ts": ts, "v": v, "w": None}


def _rows(table: Table) -> list[Row]:
    return sorted(table.read_arrow(SCHEMA.names).to_pylist(), key=_order)


def test_an_insert_that_allows_no_duplicates_is_an_upsert(made: Table) -> None:
    options = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    commit = made.insert([_row("a", 7, ts=2), _row("c", 8)], options=options)
    assert (commit.operation, commit.rows_inserted, commit.rows_updated) == ("UPSERT", 1, 1)
    assert _rows(made) == [_row("a", 7, ts=2), _row("b", 2), _row("c", 8)]


def test_a_row_that_moves_leaves_the_row_of_its_key_elsewhere_alone(made: Table) -> None:
    assert made.update_where([("p", "=", "a")], {"p": "c"}).rows_updated == 1
    assert _rows(made) == [_row("b", 2), _row("c", 1)]


@pytest.mark.parametrize(
    ("filter_", "values", "code", "keys"),
    [
        ([("p", "=", "a")], {"p": "b"}, "key_exists", "k in p=b"),
        ([("v", ">", 0)], {"p": "c"}, "repeated_keys", "k in p=c"),
        ([("p", "=", "a")], {"ts": 0, "v": 9}, "ordering_lowered", "k in p=a"),
    ],
)
def test_what_would_lose_a_row_is_refused_with_its_key(
    made: Table, filter_: list[tuple[str, str, object]], values: Row, code: str, keys: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        made.update_where(filter_, values)
    assert (refused.value.code, refused.value.parameters["keys"]) == (code, keys)
    assert _rows(made) == [_row("a", 1), _row("b", 2)]


def test_a_merge_takes_missing_values_from_the_row_of_its_partition(made: Table) -> None:
    made.merge([{"id": "k", "p": "b", "ts": 9}])
    assert _rows(made) == [_row("a", 1), _row("b", 2, ts=9)]


def test_a_merge_of_a_key_in_a_new_partition_meets_no_row(made: Table) -> None:
    assert made.merge([_row("c", 7)], on_no_match="ignore").rows_inserted == 0
    assert _rows(made) == [_row("a", 1), _row("b", 2)]
    commit = made.merge([_row("c", 7)], on_match="delete")
    assert (commit.rows_inserted, commit.rows_deleted) == (1, 0)
    assert _rows(made) == [_row("a", 1), _row("b", 2), _row("c", 7)]


def test_a_merge_without_partitions_means_all_rows_of_its_keys(made: Table) -> None:
    assert made.merge([{"id": "k", "ts": 2, "v": 5}]).rows_updated == 2
    assert _rows(made) == [_row("a", 5, ts=2), _row("b", 5, ts=2)]


def test_the_newest_row_of_a_source_counts_and_two_newest_are_refused(made: Table) -> None:
    made.merge([_row("a", 6, ts=6), _row("a", 7, ts=7), _row("a", 5, ts=5)])
    assert _rows(made) == [_row("a", 7, ts=7), _row("b", 2)]
    with pytest.raises(InvalidRequest) as refused:
        made.merge([_row("a", 6, ts=8), _row("a", 7, ts=8)])
    assert (refused.value.code, refused.value.parameters["keys"]) == ("repeated_keys", "k in p=a")
