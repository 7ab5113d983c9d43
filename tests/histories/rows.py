"""Rows of histories: drawn so that a model can say what becomes of them."""

from collections.abc import Sequence
from random import Random

import pyarrow as pa

from tests.histories.table_model import Key, Past, Row
from tests.histories.tables import NAN, PARTITIONS, SCHEMA

IDS = tuple(f"k{number}" for number in range(8))
LATE = 500
EXTRA = ("x0", "x1")


def new_row(past: Past, chance: Random, step: int, id_: str, partition: str | None = None) -> Row:
    """A row that is newer than all before; of a living key by and large in its partition."""
    homes = [key[0] for key in past.keys_of(id_)] if past.kind.is_partitioned else []
    if partition is None:
        stays = bool(homes) and chance.random() < 0.8
        partition = chance.choice(homes) if stays else chance.choice(PARTITIONS)
    number = chance.randrange(500)
    row: dict[str, object] = {
        "id": id_,
        "p": partition,
        "ts": step * 1000 + number,
        "v": chance.randrange(20),
        "name": None if number % 5 == 0 else f"s{step}",
        "n": None if number % 7 == 0 else number,
        "d": (None, NAN, -1.5, 0.0, 2.5, float("inf"))[number % 6],
    }
    return row | {name: number for name in past.columns if name in EXTRA}


def upserted(past: Past, chance: Random, step: int) -> list[Row]:
    """Rows of some keys, old and new ones, each key once; some come late."""
    rows = []
    for id_ in chance.sample(IDS, chance.randrange(1, 5)):
        row = new_row(past, chance, step, id_)
        home = past.home(row)
        if home is not None and chance.random() < 0.15:
            row = _late(past, row, past.rows[home].row)
        if home is None and id_ in past.freed and chance.random() < 0.5:
            # Older than all that the key has seen, and yet the first row since it was deleted.
            row = {**row, "ts": step}
        rows.append(row)
    return rows


def _late(past: Past, row: Row, home: Row) -> Row:
    """The row, older than the one that is there.

    Logs are merged with each other before the base file, as Java does it. So a late row's value may
    stand before a still older one of the base file, and only values that are missing in all of them
    are filled in one way.
    """
    late = {**row, "ts": max(int(str(home["ts"])) - LATE, 0)}
    if not (past.kind.is_partial and past.kind.is_mor):
        return late
    unsure = [name for name in ("name", "n", "d", *EXTRA) if home.get(name) is not None]
    return late | dict.fromkeys(name for name in unsure if name in late)


def unknown(past: Past, chance: Random, step: int, count: int) -> list[Row]:
    """Rows of keys that the table doesn't have, so that they may be inserted unseen."""
    rows = []
    for id_ in chance.sample(IDS, len(IDS)):
        row = new_row(past, chance, step, id_)
        if past.home(row) is None and len(rows) < count:
            rows.append(row)
    return rows


def some_keys(past: Past, chance: Random, at_most: int = 3) -> list[Key]:
    """Keys of rows that there are."""
    living = sorted(past.rows)
    return chance.sample(living, min(len(living), chance.randrange(1, at_most + 1)))


def given(
    past: Past, rows: list[Row], columns: Sequence[str] | None = None, *, is_wide: bool = False
) -> pa.Table:
    """Rows as a table of that kind takes them; all of its columns, or some."""
    kind = past.kind
    names = kind.shown(tuple(columns or past.columns))
    wide = is_wide or past.is_wide
    schema = pa.schema([_field(kind.schema, name, is_wide=wide) for name in names])
    return pa.Table.from_pylist([kind.spelled(row) for row in rows], schema=schema)


def _field(schema: pa.Schema, name: str, *, is_wide: bool) -> pa.Field:
    if name not in schema.names or (name == "n" and is_wide):
        return pa.field(name, pa.int64())
    return schema.field(name)


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Plain rows in the types that all tables begin with."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
