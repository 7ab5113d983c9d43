"""Rows of histories: drawn so that a model can say what becomes of them."""

from random import Random

import pyarrow as pa

from tests.histories.past import Key, Past, Row
from tests.histories.tables import COLUMNS, PARTITIONS, SCHEMA

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
    }
    return row | {name: number for name in past.columns if name in EXTRA}


def upserted(past: Past, chance: Random, step: int) -> list[Row]:
    """Rows of some keys, old and new ones, each key once; some come late."""
    rows = []
    for id_ in chance.sample(IDS, chance.randrange(1, 5)):
        row = new_row(past, chance, step, id_)
        home = past.home(row)
        if home is not None and not past.kind.is_partial and chance.random() < 0.15:
            row = {**row, "ts": max(int(str(past.rows[home].row["ts"])) - LATE, 0)}
        rows.append(row)
    return rows


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


def table_of(rows: list[Row], columns: tuple[str, ...] = COLUMNS) -> pa.Table:
    """Rows in the table's types."""
    fields = [
        SCHEMA.field(name) if name in COLUMNS else pa.field(name, pa.int64()) for name in columns
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
