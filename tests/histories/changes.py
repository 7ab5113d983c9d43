"""Writes that follow from what the table holds: by conditions, and merges."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pyarrow.compute as pc

from lakewarden import Table
from tests.histories.operation import Call, Counts
from tests.histories.rows import IDS, given, new_row
from tests.histories.table_model import Key, Past, Row, Version
from tests.histories.tables import NAN, PARTITIONS, TableKind
from tests.histories.writes import briefly

Filter = str | list[tuple[str, str, object]] | pc.Expression
Condition = tuple[Filter, Callable[[Row], bool]]


def condition(kind: TableKind, chance: Random) -> Condition:
    """A filter, and the same in Python."""
    number = chance.randrange(20)
    firsts = [kind.key(id_)[0] for id_ in chance.sample(IDS, 3)]
    keys = sorted({"" if one is None else one for one in firsts}, key=str)
    name = chance.choice(PARTITIONS)
    partition = kind.partition(name)
    there = pc.field("p").is_null() if partition is None else pc.field("p") == partition
    return chance.choice(
        (
            ([("v", ">", number)], lambda row: int(str(row["v"])) > number),
            (
                f"v > {number} or v + 1 in (3, null)",
                lambda row: int(str(row["v"])) > number or int(str(row["v"])) == 2,
            ),
            ([("id", "in", keys)], lambda row: kind.key(str(row["id"]))[0] in keys),
            (there, lambda row: row["p"] == name),
            (
                there & (pc.field("v") <= number),
                lambda row: row["p"] == name and int(str(row["v"])) <= number,
            ),
            ([("d", ">", 1.0)], lambda row: row["d"] in (2.5, float("inf"))),
            ([("d", "!=", 2.5)], lambda row: row["d"] not in (None, 2.5)),
            (pc.field("d").is_nan(), lambda row: row["d"] == NAN),
        )
    )


def matching(past: Past, keeps: Callable[[Row], bool]) -> list[Key]:
    return sorted(key for key, version in past.rows.items() if keeps(version.row))


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    name: str = "delete_where"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        filter_, keeps = condition(past.kind, chance)
        gone = matching(past, keeps)
        return Call(
            text=f"delete_where {filter_}",
            act=lambda table: table.delete_where(filter_),
            effect=lambda past: past.remove(gone),
            differs=Counts(deleted=None if past.kind.is_mor else len(gone)),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class UpdateWhere:
    """A column of the rows that match becomes a value, or what an expression says."""

    name: str = "update_where"
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        filter_, keeps = condition(past.kind, chance)
        found = matching(past, keeps)
        adds = chance.random() < 0.5
        values: dict[str, object] = {"v": pc.field("v") + 1} if adds else {"name": f"u{step}"}

        def effect(past: Past) -> None:
            for key in found:
                row = past.rows[key].row
                new = {"v": int(str(row["v"])) + 1} if adds else {"name": f"u{step}"}
                past.rows[key] = Version({**row, **new}, step)

        return Call(
            text=f"update_where {filter_} {'v + 1' if adds else values}",
            act=lambda table: table.update_where(filter_, values),
            effect=effect,
            differs=Counts.of(past, 0, len(found)),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class MoveWhere:
    """Rows that match go to another partition, in which none of their keys is."""

    name: str = "move_where"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.kind.is_partitioned:
            return None
        filter_, keeps = condition(past.kind, chance)
        found = matching(past, keeps)
        goal = chance.choice(PARTITIONS)
        there = {key[1] for key in past.rows if key[0] == goal and key not in found}
        ids = [key[1] for key in found]
        if len(set(ids)) < len(ids) or there & set(ids):
            return None

        def effect(past: Past) -> None:
            rows = [past.rows[key].row for key in found]
            past.remove(found)
            for row in rows:
                past.set({**row, "p": goal}, step)

        return Call(
            text=f"update_where {filter_} p = {goal}",
            act=lambda table: table.update_where(filter_, {"p": past.kind.partition(goal)}),
            effect=effect,
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class Merge:
    """Each row by whether the table has its key."""

    name: str = "merge"
    weight: int = 4

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        ids = chance.sample(IDS, chance.randrange(1, 4))
        rows = [new_row(past, chance, step, id_) for id_ in ids]
        on_match = chance.choice(("update", "delete", "ignore", "add"))
        on_no_match = chance.choice(("insert", "ignore"))
        # Columns that the source lacks keep the table's values.
        lacks = on_match == "update" and on_no_match == "ignore" and chance.random() < 0.5
        columns = tuple(name for name in past.columns if not (lacks and name in ("v", "name")))
        homes = [past.home(row) for row in rows]

        def act(table: Table) -> object:
            how = {"v": pc.field("source.v") + pc.field("v")} if on_match == "add" else on_match
            return table.merge(given(past, rows, columns), how, on_no_match)

        def effect(past: Past) -> None:
            for row, home in zip(rows, homes, strict=True):
                _merge(past, row, home, step, columns, on_match, on_no_match)

        known = sum(home is not None for home in homes)
        updated = known if on_match in ("update", "add") else 0
        inserted = len(rows) - known if on_no_match == "insert" else 0
        return Call(
            text=f"merge {briefly(rows)} of {', '.join(columns)} {on_match} {on_no_match}",
            act=act,
            effect=effect,
            differs=Counts.of(past, inserted, updated, None)
            if not past.any_moves(rows)
            else Counts(),
            is_write=True,
        )


def _merge(
    past: Past,
    row: Row,
    home: Key | None,
    step: int,
    columns: tuple[str, ...],
    on_match: str,
    on_no_match: str,
) -> None:
    if home is None:
        if on_no_match == "insert":
            past.set(row, step)
        return
    old = past.rows[home].row
    match on_match:
        case "update":
            past.put({**old, **{name: row.get(name) for name in columns}}, step)
        case "delete":
            past.remove([home])
        case "add":
            added = int(str(old["v"])) + int(str(row["v"]))
            past.rows[home] = Version({**old, "v": added}, step)
