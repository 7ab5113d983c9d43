"""A key has one home in a table with a global index, and the newer row says where."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.incoming import Matches
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.locate import locate
from lakewarden.engine.index.moves import Moves, moved
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.write.routing.route import route
from lakewarden.engine.write.routing.sizes import SizeLimits
from tests.engine.index.small_tables import SmallTable, keyed_rows

MOVING = IndexChoice(IndexKind.GLOBAL_SIMPLE, moves=True)
STAYING = IndexChoice(IndexKind.GLOBAL_SIMPLE, moves=False)
LIMITS = SizeLimits(record_bytes=1, small_file_bytes=0)
COMMIT_TIME = {"hoodie__record__merge__mode": "COMMIT_TIME_ORDERING"}


def decided(table: SmallTable, rows: KeyedRows, index: IndexChoice) -> Moves:
    state = table.state()
    executor = LocalExecutor(2)
    return moved(state, rows, locate(state, rows, index, executor), index, executor)


def pairs(matches: Matches) -> list[tuple[int, str]]:
    return [
        (row, matches.slices[at].file_id)
        for row, at in zip(matches.rows.tolist(), matches.at.tolist(), strict=True)
    ]


def reported(moves: Moves) -> tuple[list[str], list[tuple[int, str]], list[tuple[int, str]]]:
    """The partitions of the rows, the pairs that stay and those that depart."""
    return moves.rows.partitions.to_pylist(), pairs(moves.matches), pairs(moves.departures)


def table_with_k1(**properties: str) -> SmallTable:
    table = SmallTable(**properties)
    table.base_file("a", "f1-0", [("k1", 5)])
    return table


def test_a_newer_row_takes_its_key_along() -> None:
    rows = keyed_rows([("b", "k1")], ordering={0: 5})
    assert reported(decided(table_with_k1(), rows, MOVING)) == (["b"], [], [(0, "f1-0")])


def test_an_older_row_goes_to_where_its_key_is() -> None:
    rows = keyed_rows([("b", "k1")], ordering={0: 4})
    assert reported(decided(table_with_k1(), rows, MOVING)) == (["a"], [(0, "f1-0")], [])


def test_by_commit_time_every_row_is_newer() -> None:
    rows = keyed_rows([("b", "k1")], ordering={0: 4})
    table = table_with_k1(**COMMIT_TIME)
    assert reported(decided(table, rows, MOVING)) == (["b"], [], [(0, "f1-0")])


def test_the_newest_version_in_the_logs_is_the_one_to_heartbeat() -> None:
    table = table_with_k1()
    table.log_file("a", "f1-0", [("k1", 9)])
    rows = keyed_rows([("b", "k1")], ordering={0: 8})
    assert reported(decided(table, rows, MOVING)) == (["a"], [(0, "f1-0")], [])


def test_an_index_that_moves_nothing_writes_where_the_key_is() -> None:
    rows = keyed_rows([("b", "k1"), ("b", "k2")], ordering={0: 9})
    assert reported(decided(table_with_k1(), rows, STAYING)) == (["a", "b"], [(0, "f1-0")], [])


@pytest.mark.parametrize("index", [MOVING, STAYING])
def test_a_delete_goes_to_where_its_key_is(index: IndexChoice) -> None:
    rows = keyed_rows([("b", "k1")], deletes=[0], ordering={0: 9})
    assert reported(decided(table_with_k1(), rows, index)) == (["a"], [(0, "f1-0")], [])


@pytest.mark.parametrize("index", [MOVING, STAYING])
@pytest.mark.parametrize("properties", [{}, COMMIT_TIME])
def test_a_key_that_logs_deleted_elsewhere_is_not_there(
    index: IndexChoice, properties: dict[str, str]
) -> None:
    table = table_with_k1(**properties)
    table.log_file("a", "f1-0", deleted=["k1"])
    assert reported(decided(table, keyed_rows([("b", "k1")]), index)) == (["b"], [], [])


@pytest.mark.parametrize("index", [MOVING, STAYING])
def test_a_key_that_comes_back_to_its_partition_returns_to_its_group(index: IndexChoice) -> None:
    table = table_with_k1()
    table.log_file("a", "f1-0", deleted=["k1"])
    assert reported(decided(table, keyed_rows([("a", "k1")]), index)) == (["a"], [(0, "f1-0")], [])


def table_with_moved_k1() -> SmallTable:
    table = table_with_k1()
    table.log_file("a", "f1-0", deleted=["k1"])
    table.base_file("b", "f2-0", [("k1", 6)])
    return table


def test_a_key_that_moved_away_and_back_returns_to_its_group() -> None:
    rows = keyed_rows([("a", "k1")], ordering={0: 7})
    found = reported(decided(table_with_moved_k1(), rows, MOVING))
    assert found == (["a"], [(0, "f1-0")], [(0, "f2-0")])


def test_a_row_that_must_stay_elsewhere_does_not_revive_its_old_group() -> None:
    rows = keyed_rows([("a", "k1")], ordering={0: 7})
    assert reported(decided(table_with_moved_k1(), rows, STAYING)) == (["b"], [(0, "f2-0")], [])


def test_keys_that_live_in_two_partitions_become_one() -> None:
    table = table_with_k1()
    table.base_file("b", "f2-0", [("k1", 6)])
    table.base_file("c", "f3-0", [("k1", 6)])
    rows = keyed_rows([("b", "k1")], ordering={0: 7})
    found = reported(decided(table, rows, MOVING))
    assert found == (["b"], [(0, "f2-0")], [(0, "f1-0"), (0, "f3-0")])


def test_an_index_of_each_partition_moves_nothing() -> None:
    simple = IndexChoice(IndexKind.SIMPLE)
    assert reported(decided(table_with_k1(), keyed_rows([("b", "k1")]), simple)) == (["b"], [], [])


def test_values_that_do_not_count_move_along_with_the_key() -> None:
    table = table_with_k1(hoodie__table__partial__update__mode="IGNORE_DEFAULTS")
    rows = keyed_rows([("b", "k2"), ("b", "k1")], ordering={0: 7, 1: 6})
    bare = rows.rows.set_column(0, "id", pa.array(["k2", None], pa.string()))
    moves = decided(table, replace(rows, rows=bare), MOVING)
    assert moves.rows.rows.column("id").to_pylist() == ["k2", "k1"]
    assert moves.rows.rows.column("ts").to_pylist() == [7, 6]


@dataclass(frozen=True)
class Life:
    """What became of a key: where base files have it, and where logs say that it lives now."""

    base: str | None
    died: bool
    home: str | None
    time: int


PATHS = st.sampled_from("abc")
LIVES = st.builds(Life, st.none() | PATHS, st.booleans(), st.none() | PATHS, st.integers(0, 4))
INCOMING = st.tuples(PATHS, st.integers(0, 4), st.booleans())
Home = tuple[str, int]


def table_of(lives: list[Life]) -> tuple[SmallTable, dict[str, Home]]:
    """A table in which the keys k0, k1, ... had their lives, and where they are."""
    table, homes = SmallTable(), dict[str, Home]()
    for path in "abc":
        rows = [(f"k{at}", life.time) for at, life in enumerate(lives) if life.base == path]
        if rows:
            table.base_file(path, f"{path}-0", rows)
    for at, life in enumerate(lives):
        key = f"k{at}"
        if life.base is not None and (life.died or life.home is not None):
            table.log_file(life.base, f"{life.base}-0", deleted=[key])
        elif life.base is not None:
            homes[key] = (life.base, life.time)
        if life.home is not None:
            table.log_file(life.home, f"{life.home}-0", [(key, life.time)])
            homes[key] = (life.home, life.time)
    return table, homes


def expected(
    homes: dict[str, Home], incoming: dict[str, tuple[str, int, bool]], *, moves: bool
) -> dict[str, Home]:
    result = dict(homes)
    for key, (path, time, deletes) in incoming.items():
        home = homes.get(key)
        if deletes:
            result.pop(key, None)
        elif home is None:
            result[key] = (path, time)
        elif time >= home[1]:
            result[key] = (path if moves else home[0], time)
    return result


def executed(
    homes: dict[str, Home], table: SmallTable, rows: KeyedRows, index: IndexChoice
) -> dict[str, Home]:
    """Where keys are once every group has done its work; no key may be in two groups."""
    moves = decided(table, rows, index)
    routed = route(moves.rows, moves.matches, (), LIMITS, SeededIds(1), departures=moves.departures)
    groups = {FileGroupId(path, f"{path}-0"): dict[str, int]() for path in "abc"}
    for key, (path, time) in homes.items():
        groups[FileGroupId(path, f"{path}-0")][key] = time
    times = rows.rows.column("ts").to_pylist()
    for work in routed.groups:
        content = groups.setdefault(work.key, {})
        for row in work.departures.tolist():
            del content[rows.keys[row].as_py()]
        for row in np.concatenate([work.updates, work.inserts]).tolist():
            key = rows.keys[row].as_py()
            if rows.is_delete[row]:
                content.pop(key, None)
            elif times[row] >= content.get(key, 0):
                content[key] = times[row]
    found = [
        (key, (group.partition, time)) for group in groups for key, time in groups[group].items()
    ]
    assert len({key for key, _ in found}) == len(found)
    return dict(found)


@pytest.mark.parametrize("index", [MOVING, STAYING], ids=["moving", "staying"])
@given(st.lists(LIVES, max_size=5), st.dictionaries(st.integers(0, 6), INCOMING, max_size=7))
def test_every_key_ends_up_where_the_rules_say(
    index: IndexChoice, lives: list[Life], given_rows: dict[int, tuple[str, int, bool]]
) -> None:
    table, homes = table_of(lives)
    incoming = {f"k{at}": row for at, row in given_rows.items()}
    rows = keyed_rows(
        [(path, key) for key, (path, _, _) in incoming.items()],
        deletes=[at for at, (_, _, deletes) in enumerate(incoming.values()) if deletes],
        ordering={at: time for at, (_, time, _) in enumerate(incoming.values())},
    )
    found = executed(homes, table, rows, index)
    assert found == expected(homes, incoming, moves=index.moves)
