"""Looking up keys among 5 million rows with a record index, by a process that goes on doing so."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import lakewarden
from bench.measure import OURS, Bound, Measure, Rounds, clocked, in_turns, near, within
from bench.places import built_once
from bench.spark_reader import CONFIGURATION
from lakewarden.table import Table

ROWS, FILES = 5_000_000, 20
PEER = "DuckDB, on the same files"
EMPTY = "a SELECT that is empty by its condition"
# By the number of keys: what a lookup may take.
LIMITS_MS = {1: 10, 100: 60, 10_000: 450}
WARMING_KEYS = 100
COLUMNS = ("id", "day", "ts", "a", "b", "text")
INCLUDES = (
    "from the keys, in random order and of different lengths, to an Arrow table of six columns; "
    "our table is open and its timeline is looked at anew, the peer's connection is open and its "
    "files are named; before the first round both have looked up 100 keys"
)

INCLUDES_SQL = "from the text of the statement to its rows, in a session that is warm"


def run() -> list[Measure]:
    """The same keys for both; another choice of keys each time."""
    folder = built_once(f"lookups-{ROWS}-{FILES}", _build)
    found = []
    for count in LIMITS_MS:
        rounds = _rounds(folder, count)
        case = f"{count:,} keys" if count > 1 else "1 key"
        found += [
            within(case, rounds, at_most_ms=LIMITS_MS[count], includes=INCLUDES),
            near(f"{case}, beside DuckDB", rounds, PEER, at_most=1, includes=INCLUDES),
        ]
    return [*found, _by_sql(folder)]


def _by_sql(folder: Path) -> Measure:
    """SELECT of the row with a key, less a SELECT that the planner finds empty."""
    local = {"spark.master": "local[2]", "spark.log.level": "ERROR"}
    spark = lakewarden.session({**CONFIGURATION, **lakewarden.spark_settings(), **local})
    choices = np.random.default_rng(1)
    try:
        spark.sql(f"CREATE TABLE orders USING lakewarden LOCATION '{folder}'")

        def ask(condition: str, count: int) -> None:
            found = spark.sql(f"SELECT {', '.join(COLUMNS)} FROM orders WHERE {condition}")
            assert len(found.collect()) == count

        def by_key() -> None:
            (key,) = _keys(choices.choice(ROWS, 1)).to_pylist()
            ask(f"id = '{key}'", 1)

        turns = {OURS: clocked(by_key), EMPTY: clocked(partial(ask, "false", 0))}
        rounds = in_turns(turns, rounds=25, warm_ups=10)
    finally:
        spark.stop()
    more_ms = (rounds.median(OURS) - rounds.median(EMPTY)) * 1000
    unit = f"ms more than {EMPTY}"
    return Measure("1 key, in SQL", more_ms, unit, Bound(30), INCLUDES_SQL, rounds)


def _rounds(folder: Path, count: int) -> Rounds:
    table = Table(str(folder))
    paths = [str(path) for path in sorted(folder.glob("*.parquet"))]
    session = duckdb.connect()
    choices = np.random.default_rng(count)

    def keys() -> list[str]:
        return _keys(choices.choice(ROWS, count, replace=False)).to_pylist()

    ours = partial(table.lookup, columns=COLUMNS)
    theirs = partial(_theirs, session, paths)
    # Where the keys of a file are is known after the first look into it.
    asked = _keys(choices.choice(ROWS, WARMING_KEYS, replace=False)).to_pylist()
    assert ours(asked).sort_by("id").equals(theirs(asked).sort_by("id"))
    return in_turns(
        {OURS: partial(_seconds, ours, keys), PEER: partial(_seconds, theirs, keys)}, rounds=11
    )


def _seconds(look_up: Callable[[list[str]], pa.Table], keys: Callable[[], list[str]]) -> float:
    return clocked(partial(look_up, keys()))()


def _theirs(session: duckdb.DuckDBPyConnection, paths: list[str], keys: list[str]) -> pa.Table:
    text = f"SELECT {', '.join(COLUMNS)} FROM read_parquet(?) WHERE id IN (SELECT unnest(?))"
    return session.sql(text, params=[paths, keys]).to_arrow_table()


def _keys(numbers: np.ndarray) -> pa.Array:
    """Keys of two to nine characters, whose order is not that of the numbers."""
    texts = pa.array(numbers * 7_919 % 99_999_989).cast(pa.string())
    return pa.array([f"k{text}" for text in texts.to_pylist()])


def _build(folder: Path) -> None:
    chance = np.random.default_rng(5)
    numbers = chance.permutation(ROWS)
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("day", pa.int32()),
            ("ts", pa.int64()),
            ("a", pa.int64()),
            ("b", pa.float64()),
            ("text", pa.string()),
        ]
    )
    table = Table.create(str(folder), schema, key=["id"], ordering=["ts"], type="cow")
    for part in np.array_split(numbers, FILES):
        texts = [f"some text {number}" for number in chance.integers(0, 1 << 40, len(part))]
        columns = [_keys(part), part // 5_000, part, part % 1_000, chance.random(len(part)), texts]
        table.bulk_insert(
            pa.table([pa.array(column) for column in columns], names=schema.names).cast(schema)
        )
    table.create_index("record_index", ["id"])
