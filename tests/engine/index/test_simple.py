"""Keys are found in base files and logs, whatever becomes of them there."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.locate import locate
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.table import Table
from tests.engine.index.small_tables import SmallTable, keyed_rows

Pairs = list[tuple[int, str]]
IN_FILES = [IndexKind.SIMPLE, IndexKind.BLOOM]
IN_ALL_FILES = [IndexKind.GLOBAL_SIMPLE, IndexKind.GLOBAL_BLOOM]


def located(table: SmallTable, rows: KeyedRows, kind: IndexKind) -> Pairs:
    """Pairs of a row and a file id, in the order of the matches."""
    matches = locate(table.state(), rows, IndexChoice(kind), LocalExecutor(2))
    return [
        (row, matches.slices[at].file_id)
        for row, at in zip(matches.rows.tolist(), matches.at.tolist(), strict=True)
    ]


@pytest.mark.parametrize("kind", [*IN_FILES, *IN_ALL_FILES])
def test_nothing_is_found_in_an_empty_table(kind: IndexKind) -> None:
    assert located(SmallTable(), keyed_rows([("a", "k1")]), kind) == []


@pytest.mark.parametrize("kind", [*IN_FILES, *IN_ALL_FILES])
def test_no_rows_have_no_matches(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)])
    assert located(table, keyed_rows([]), kind) == []


@pytest.mark.parametrize("kind", IN_FILES)
def test_a_key_is_found_in_its_own_partition_only(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1), ("k2", 1)])
    table.base_file("b", "f2-0", [("k1", 1)])
    rows = keyed_rows([("b", "k1"), ("a", "k1"), ("b", "k2"), ("c", "k1")])
    assert located(table, rows, kind) == [(0, "f2-0"), (1, "f1-0")]


@pytest.mark.parametrize("kind", IN_ALL_FILES)
def test_a_global_index_finds_a_key_in_every_partition(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)])
    table.base_file("b", "f2-0", [("k1", 1)])
    assert located(table, keyed_rows([("c", "k1")]), kind) == [(0, "f1-0"), (0, "f2-0")]


@pytest.mark.parametrize("kind", IN_FILES)
def test_a_key_that_inserts_left_in_several_groups_has_several_pairs(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)])
    table.base_file("a", "f2-0", [("k1", 1), ("k1", 2)])
    assert located(table, keyed_rows([("a", "k1")]), kind) == [(0, "f1-0"), (0, "f2-0")]


@pytest.mark.parametrize("kind", IN_FILES)
def test_rows_with_one_key_are_all_matched(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1), ("k2", 1)])
    rows = keyed_rows([("a", "k2"), ("a", "k1"), ("a", "new"), ("a", "k2")])
    assert located(table, rows, kind) == [(0, "f1-0"), (1, "f1-0"), (3, "f1-0")]


@pytest.mark.parametrize("kind", IN_FILES)
def test_a_key_is_found_in_logs(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)])
    table.log_file("a", "f1-0", [("k2", 1)])
    table.log_file("a", "f2-0", [("k3", 1)])
    rows = keyed_rows([("a", "k2"), ("a", "k3")])
    assert located(table, rows, kind) == [(0, "f1-0"), (1, "f2-0")]


@pytest.mark.parametrize("kind", IN_FILES)
def test_a_deleted_key_is_found_where_it_was(kind: IndexKind) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)])
    table.log_file("a", "f1-0", deleted=["k1", "k2"])
    rows = keyed_rows([("a", "k1"), ("a", "k2")])
    assert located(table, rows, kind) == [(0, "f1-0"), (1, "f1-0")]


@pytest.mark.parametrize("kind", IN_FILES)
def test_only_the_newest_base_file_of_a_group_counts(kind: IndexKind) -> None:
    table = SmallTable(table_type="COPY_ON_WRITE")
    table.base_file("a", "f1-0", [("gone", 1)])
    table.base_file("a", "f1-0", [("k1", 1)])
    assert located(table, keyed_rows([("a", "gone"), ("a", "k1")]), kind) == [(1, "f1-0")]


def test_row_groups_without_room_for_a_key_change_nothing() -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [(f"k{n:03d}", 1) for n in range(90)], row_group_rows=10)
    rows = keyed_rows([("a", "k005"), ("a", "k0055"), ("a", "k077"), ("a", "zz")])
    assert located(table, rows, IndexKind.SIMPLE) == [(0, "f1-0"), (2, "f1-0")]


def test_workers_may_share_a_slice() -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [(f"k{n:03d}", 1) for n in range(90)], row_group_rows=10)
    table.log_file("a", "f1-0", [("k200", 1)])
    rows = keyed_rows([("a", f"k{n:03d}") for n in (0, 11, 22, 33, 89, 90, 200)])
    matches = locate(table.state(), rows, IndexChoice(IndexKind.SIMPLE), LocalExecutor(3))
    assert matches.rows.tolist() == [0, 1, 2, 3, 4, 6]


def test_a_file_without_key_footers_is_read() -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)], footer_keys=[])
    assert located(table, keyed_rows([("a", "k1")]), IndexKind.BLOOM) == [(0, "f1-0")]


@pytest.mark.parametrize("reported", [["k2"], ["k0", "k2"]], ids=["by range", "by filter"])
def test_a_key_that_the_footer_rules_out_is_not_looked_for(reported: list[str]) -> None:
    table = SmallTable()
    table.base_file("a", "f1-0", [("k1", 1)], footer_keys=reported)
    assert located(table, keyed_rows([("a", "k1")]), IndexKind.BLOOM) == []


@pytest.mark.parametrize("kind", IN_FILES)
def test_a_base_file_that_is_none_is_corrupt(kind: IndexKind) -> None:
    table = SmallTable()
    name = table.base_file("a", "f1-0", [("k1", 1)])
    table.storage.put(f"a/{name}", b"PAR1 nothing else PAR1")
    with pytest.raises(CorruptTable, match="f1-0"):
        located(table, keyed_rows([("a", "k1")]), kind)


@pytest.mark.parametrize("kind", IN_FILES)
def test_keys_are_put_together_where_files_do_not_store_them(kind: IndexKind) -> None:
    table = SmallTable(hoodie__populate__meta__fields="false")
    table.base_file("a", "f1-0", [("k1", 1)], footer_keys=[])
    assert located(table, keyed_rows([("a", "k1"), ("a", "k2")]), kind) == [(0, "f1-0")]


KEYS = st.lists(st.integers(0, 9).map("k{}".format), max_size=6)
FILES = st.lists(st.tuples(st.sampled_from("ab"), KEYS, KEYS, KEYS), max_size=4)


@pytest.mark.parametrize("kind", [*IN_FILES, *IN_ALL_FILES])
@given(FILES, st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12).map("k{}".format))))
def test_exactly_the_keys_that_a_group_has_or_had_are_found(
    kind: IndexKind,
    groups: list[tuple[str, list[str], list[str], list[str]]],
    given_rows: list[tuple[str, str]],
) -> None:
    table, content = SmallTable(), dict[tuple[str, str], set[str]]()
    for number, (path, in_base, in_log, deleted) in enumerate(groups):
        name = f"f{number}-0"
        if in_base:
            table.base_file(path, name, [(key, 1) for key in in_base], row_group_rows=2)
        if in_log or deleted:
            table.log_file(path, name, [(key, 2) for key in in_log], deleted)
        content[path, name] = {*in_base, *in_log, *deleted}
    expected = [
        (row, name)
        for row, (row_path, key) in enumerate(given_rows)
        for (path, name), keys in sorted(content.items())
        if key in keys and (kind.is_global or path == row_path)
    ]
    assert located(table, keyed_rows(given_rows), kind) == expected


@pytest.mark.parametrize("kind", ["mor", "cow"])
def test_a_key_is_found_among_many_groups_whose_ranges_are_known(kind: str) -> None:
    # Java orders the last key otherwise, so that the range of its file cannot be compared.
    keys = [*(f"k{number:02d}" for number in range(39)), "\U0001f600"]
    split = {
        "hoodie.copyonwrite.insert.auto.split": False,
        "hoodie.copyonwrite.insert.split.size": 2,
        "hoodie.parquet.small.file.limit": 0,
    }
    rows = pa.table({"id": keys, "ts": [1] * len(keys)})
    table = Table.create(
        "",
        rows.schema,
        key=["id"],
        ordering=["ts"],
        type=kind,
        properties=split,
        storage=fresh_memory_storage(),
    )
    table.insert(rows)
    table.delete(keys[:1])
    # What the logs of one key say tells nothing of the other keys of their groups.
    table.upsert(rows.slice(38, 1))
    table.upsert(rows.slice(39, 1))
    table.upsert(rows)
    assert sorted(table.read_arrow(columns=["id"])["id"].to_pylist()) == sorted(keys)
