"""Clients of a table in a race: each a process with its own clock, lock and view of the storage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Self

import pyarrow.compute as pc

from lakewarden import Table
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, WAIT_SECONDS, Strategy
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write.settings import CONFLICT_RETRIES
from tests.histories.rows import table_of
from tests.histories.table_model import Past
from tests.histories.tables import PARTITIONS, TableKind
from tests.histories.upkeep import BY_VALUE, OF_ROWS, build_asked


class Client(Table):
    """A table as one process has it, whose lock and ports are those of the race."""

    _race: Context
    # What is older was there before the race.
    prepared_until = ""
    # Whether it takes part in early conflict detection, and how.
    _detection: Mapping[str, str]

    @classmethod
    def at(cls, context: Context, prepared_until: str, detection: Mapping[str, str]) -> Self:
        client = cls.__new__(cls)
        client.prepared_until = prepared_until
        client._detection = detection
        client._race = context
        client._open(context.storage, context.ports)
        return client

    def rest(self, seconds: float) -> None:
        """Let others go on."""
        self._race.ports.clock.sleep(seconds)

    def _context(self, given: Mapping[str, object], properties: Mapping[str, str]) -> Context:
        both = {**self._detection, **given}
        return replace(super()._context(both, properties), lock=self._race.lock)


def drawn_detection(chance: Random) -> Mapping[str, str]:
    """Off, or any strategy; a write that gives way may wait for its rival and begin anew."""
    strategy = chance.choice((None, *Strategy))
    if strategy is None:
        return {}
    retries = chance.choice((0, 0, 1))
    return {
        DETECTION.key: "true",
        STRATEGY.key: strategy.value,
        WAIT_SECONDS.key: "300",
        CONFLICT_RETRIES.key: str(retries),
    }


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that a client does; `effect` is what it does to the rows, wherever it comes."""

    text: str
    act: Callable[[Table], object]
    effect: Callable[[Past], None] | None = None
    # By which its rows are known.
    number: int = 0


OLD = tuple(f"k{number}" for number in range(6))
NEW = ("n0", "n1")
_CLEANING = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}


def home_of(kind: TableKind, id_: str) -> str:
    """The partition of a key: a race is about who comes first, and not about where rows are."""
    return PARTITIONS[int(id_[1:]) % 2] if kind.is_partitioned else PARTITIONS[0]


def row(kind: TableKind, id_: str, number: int) -> dict[str, object]:
    """A row that tells which deed has written it; ordering values are all the same."""
    home = home_of(kind, id_)
    return {"id": id_, "p": home, "ts": 1, "v": 0, "name": f"d{number}", "n": number}


def drawn_deed(
    kind: TableKind, chance: Random, number: int, without: frozenset[str] = frozenset()
) -> Deed:
    """A write; two clients want the same keys often."""
    makers = {
        "upsert": _upsert,
        "update": _update,
        "update, tended": partial(_update, options=_CLEANING),
        "new": _new,
        "new, too": _new,
        "add": _add,
        "merge": _merge,
        "delete": _delete,
        "overwrite": _overwrite,
        "overwrite partitions": _overwrite,
        "rollback": _roll_back,
    }
    known = {name: make for name, make in makers.items() if name.partition(",")[0] not in without}
    name = chance.choice(sorted(known))
    deed = known[name](kind, chance, number)
    return replace(deed, text=deed.text if name != "overwrite partitions" else name, number=number)


def _upsert(kind: TableKind, chance: Random, number: int) -> Deed:
    rows = [row(kind, id_, number) for id_ in chance.sample((*OLD, *NEW), 2)]
    return Deed(
        f"upsert {', '.join(str(one['id']) for one in rows)}",
        lambda table: table.upsert(table_of(rows)),
        lambda past: _put(past, rows, number),
    )


def _update(
    kind: TableKind, chance: Random, number: int, options: Mapping[str, str] | None = None
) -> Deed:
    """Rows that are there from the start, unless somebody deletes them; a clean may follow."""
    rows = [row(kind, id_, number) for id_ in chance.sample(OLD, 2)]
    return Deed(
        f"update {', '.join(str(one['id']) for one in rows)}",
        lambda table: table.upsert(table_of(rows), options),
        lambda past: _put(past, rows, number),
    )


def _new(kind: TableKind, chance: Random, number: int) -> Deed:
    """Keys that others bring at the same time, or one that nobody else has."""
    ids = [*chance.sample(NEW, chance.randrange(1, 3)), f"m{number}"]
    rows = [row(kind, id_, number) for id_ in ids]
    return Deed(
        f"upsert new {', '.join(ids)}",
        lambda table: table.upsert(table_of(rows)),
        lambda past: _put(past, rows, number),
    )


def _put(past: Past, rows: list[dict[str, object]], number: int) -> None:
    for one in rows:
        past.put(one, number)


def _add(kind: TableKind, chance: Random, number: int) -> Deed:
    """Count up what is there: what another has counted may not be lost."""
    ids = sorted(chance.sample(OLD, 2))

    def effect(past: Past) -> None:
        for id_ in ids:
            for key in past.keys_of(id_):
                old = past.rows[key].row
                past.set({**old, "v": int(str(old["v"])) + 1}, number)

    return Deed(
        f"add to {', '.join(ids)}",
        lambda table: table.update_where([("id", "in", ids)], {"v": pc.field("v") + 1}),
        effect,
    )


def _merge(kind: TableKind, chance: Random, number: int) -> Deed:
    """What matches is counted up, what doesn't comes in."""
    rows = [row(kind, id_, number) for id_ in (*chance.sample(OLD, 1), *chance.sample(NEW, 1))]

    def effect(past: Past) -> None:
        for one in rows:
            home = past.home(one)
            old = one if home is None else past.rows[home].row
            added = 0 if home is None else 1
            past.set({**old, "v": int(str(old["v"])) + added}, number)

    return Deed(
        f"merge {', '.join(str(one['id']) for one in rows)}",
        lambda table: table.merge(table_of(rows), {"v": pc.field("v") + 1}),
        effect,
    )


def _delete(kind: TableKind, chance: Random, number: int) -> Deed:
    ids = chance.sample((*OLD, *NEW), 2)

    def effect(past: Past) -> None:
        for id_ in ids:
            past.remove(past.keys_of(id_))

    return Deed(f"delete {', '.join(ids)}", lambda table: table.delete(ids), effect)


def _overwrite(kind: TableKind, chance: Random, number: int) -> Deed:
    """All rows, or those of a partition, give way to two."""
    is_whole = chance.random() < 0.5
    ids = chance.sample((*OLD, *NEW), 3)
    rows = [row(kind, id_, number) for id_ in ids]

    def effect(past: Past) -> None:
        touched = {past.key(one)[0] for one in rows}
        past.drop_partitions({key[0] for key in past.rows} if is_whole else touched)
        for one in rows:
            past.set(one, number)

    def act(table: Table) -> object:
        taken = table_of(rows)
        return table.overwrite(taken) if is_whole else table.overwrite_partitions(taken)

    return Deed(
        f"{'overwrite' if is_whole else 'overwrite-partitions'} by {', '.join(ids)}", act, effect
    )


def _roll_back(kind: TableKind, chance: Random, number: int) -> Deed:
    """The newest write, whoever has made it, unless something is built on it."""

    def act(table: Table) -> object:
        newest = max(one.requested for one in table.timeline().completed())
        assert isinstance(table, Client)
        return table.rollback(newest) if newest > table.prepared_until else None

    return Deed("rollback of the newest", act)


def _restore(table: Table) -> object:
    """To the newest savepoint, if there is one."""
    points = sorted(one.instant for one in table.savepoints())
    return table.restore(points[-1]) if points else None


def _plan(table: Table) -> object:
    return table.clustering.schedule(True)


def _cancel(table: Table) -> object:
    return [table.cancel(plan.instant, force=True) for plan in table.plans()]


def _carry_out(table: Table) -> object:
    return table.clustering.run()


BY_KEY = "record_index"


def _of_rows(kind: TableKind) -> tuple[str, ...]:
    """Indexes of values and of expressions; those of values lead to keys that are there once."""
    return OF_ROWS if kind.has_keys_once else tuple(one for one in OF_ROWS if one not in BY_VALUE)


def index_deeds(kind: TableKind) -> dict[str, Callable[[Table], object]]:
    """What indexers do: they plan, carry out what they or others have planned, and call it off."""
    within = kind.is_partitioned and not kind.is_global
    options = {"isPartitioned": "true"} if within else {}

    def build(table: Table, operation: str) -> object:
        return table.build_index(BY_KEY, ("id",), BY_KEY, options, op=operation)

    of_rows = {
        f"{word} {one}": partial(build_asked, kind=kind, partition=one, operation=operation)
        for one in _of_rows(kind)
        for word, operation in (("build", "scheduleAndExecute"), ("schedule", "schedule"))
    }
    return of_rows | {
        "schedule index": lambda table: build(table, "schedule"),
        "build index": lambda table: build(table, "scheduleAndExecute"),
        "build statistics": lambda table: table.build_index(
            "column_stats", ("v", "name"), "column_stats"
        ),
        "run indexing": lambda table: table.run_indexing(),
        "run indexing, too": lambda table: table.run_indexing(),
        "cancel indexing": lambda table: [
            table.cancel(one, force=True) for one in table.pending_indexing()
        ],
    }


def service_deeds(kind: TableKind) -> dict[str, Callable[[Table], object]]:
    """Services by name, with as little kept as can be."""
    one = {"hoodie.clean.commits.retained": "1"}
    deeds: dict[str, Callable[[Table], object]] = {
        "clean": lambda table: table.clean(options=one),
        "archive": lambda table: table.archive(
            options={**one, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
        ),
        "savepoint": lambda table: table.savepoint(),
        "settle": lambda table: (table.rollback_failed_writes(), table.sweep()),
    }
    deeds["restore"] = _restore
    deeds["cancel"] = _cancel
    if kind.has_metadata:
        deeds["drop index"] = lambda table: table.drop_index("column_stats", if_exists=True)
        deeds["create index"] = lambda table: table.create_index(
            "column_stats", ("v",), "column_stats", if_not_exists=True
        )
        deeds["drop row index"] = lambda table: [
            table.drop_index(one.name, if_exists=True)
            for one in table.indexes()
            if one.partition in OF_ROWS
        ]
        deeds["drop record index"] = lambda table: table.drop_index(BY_KEY, if_exists=True)
    if kind.index != "BUCKET":
        deeds["plan"] = _plan
        deeds["run plans"] = _carry_out
        deeds["clustering"] = lambda table: table.clustering.schedule_and_run()
    if kind.is_mor:
        deeds["compaction"] = lambda table: table.compaction.schedule_and_run()
        deeds["log compaction"] = lambda table: table.log_compaction.schedule_and_run()
    return deeds
