"""Writes whose types are not the table's: what fits is cast, what doesn't is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from lakewarden import InvalidRequest, Table
from tests.histories.operation import Call
from tests.histories.rows import given, upserted
from tests.histories.seen import Difference
from tests.histories.table_model import Past, Row
from tests.histories.writes import EVOLVING, briefly

LARGE = 1 << 40


@dataclass(frozen=True, slots=True)
class Cast:
    """Rows in wider types, as pandas makes them, with values that the table's types hold."""

    name: str = "upsert to cast"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        rows = upserted(past, chance, step)

        def effect(past: Past) -> None:
            for row in rows:
                past.put(row, step)

        def act(table: Table) -> object:
            wide = given(past, rows, is_wide=True)
            place = wide.schema.get_field_index("name")
            text = wide.column(place).cast(pa.large_string())
            return table.upsert(wide.set_column(place, "name", text))

        return Call(
            text=f"upsert wider types {briefly(rows)}", act=act, effect=effect, is_write=True
        )


@dataclass(frozen=True, slots=True)
class Widen:
    """An upsert of larger numbers than the table has room for, which makes room."""

    name: str = "widen"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        rows = _large(past, chance, step)

        def effect(past: Past) -> None:
            past.is_wide = True
            for row in rows:
                past.put(row, step)

        return Call(
            text=f"widen n by upsert {briefly(rows)}",
            act=lambda table: table.upsert(given(past, rows, is_wide=True), **EVOLVING),
            effect=effect,
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class Misfit:
    """Writes that must be refused, and change nothing."""

    name: str = "misfit"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        rows = _large(past, chance, step)
        choices: dict[str, Callable[[], pa.Table]] = {"a stray column": lambda: _stray(past, rows)}
        if not past.is_wide:
            choices["large numbers"] = lambda: given(past, rows, is_wide=True)
        if past.kind.is_floating:
            choices["a key of another text"] = lambda: _with(given(past, _small(rows)), "id", 1e300)
        elif past.kind.is_partitioned:
            choices["an empty partition"] = lambda: _with(given(past, _small(rows)), "p", "")
        if past.kind.is_composite:
            choices["a placeholder"] = lambda: _with(given(past, _small(rows)), "q", "__null__")
        what = chance.choice(sorted(choices))

        def act(table: Table) -> object:
            try:
                table.upsert(choices[what]())
            except InvalidRequest:
                return None
            raise Difference("misfit", f"{past.kind} takes {what}.")

        return Call(text=f"misfit: {what}", act=act)


def _large(past: Past, chance: Random, step: int) -> list[Row]:
    return [{**row, "n": LARGE + step} for row in upserted(past, chance, step)]


def _small(rows: list[Row]) -> list[Row]:
    return [{**row, "n": 1} for row in rows]


def _stray(past: Past, rows: list[Row]) -> pa.Table:
    return given(past, _small(rows)).append_column("stray", pa.array([1] * len(rows)))


def _with(rows: pa.Table, name: str, value: str | float) -> pa.Table:
    place = rows.schema.get_field_index(name)
    type_ = rows.schema.field(name).type
    return rows.set_column(place, name, pa.array([value] * len(rows), type_))
