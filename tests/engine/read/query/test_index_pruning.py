"""Indexes leave out what cannot match; where one may be untrue, it is not believed."""

import random
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.read.merge.predicate import Condition
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.golden_tables import GOLDEN_FOLDER, GoldenTable
from tests.sampling import sample

INDEXED = sorted(path.stem for path in (GOLDEN_FOLDER / "indexing").glob("*.zip"))
FILTERS_EACH = 25

Opened = Callable[[str], Table]


@pytest.fixture
def opened(golden_copy: GoldenTable) -> Opened:
    """A table that Java made with indexes."""
    return lambda name: Table(str(golden_copy(f"indexing/{name}")))


def drawn_filter(rows: list[dict[str, object]], seed: random.Random) -> list[list[Condition]]:
    """Alternatives of conditions on columns that have indexes, with values of rows and others."""

    def condition() -> Condition:
        column = seed.choice(["id", "name", "ts", "n", "_hoodie_record_key"])
        value = seed.choice(rows)[column]
        other = f"{value}x" if isinstance(value, str) else 777_777
        match seed.choice(["=", "=", "in", "in", ">=", "<", "is null", "starts with"]):
            case "is null":
                return column, "is null", None
            case "in":
                return column, "in", [value, other, seed.choice(rows)[column]]
            case "starts with" if isinstance(value, str):
                return column, "starts with", value[: seed.randint(1, len(value))]
            case "<":
                return column, "<", value
            case ">=":
                return column, ">=", value
        return column, "=", seed.choice([value, value, other])

    return [[condition() for _ in range(seed.randint(1, 2))] for _ in range(seed.randint(1, 2))]


def drawn_text(rows: list[dict[str, object]], seed: random.Random) -> str:
    """A filter as text, with functions of columns that have indexes."""

    def condition() -> str:
        name = str(seed.choice(rows)["name"])
        return seed.choice(
            [
                f"lower(name) = '{name.lower()}'",
                f"upper(name) = '{name.upper()}'",
                f"lower(name) in ('{name}', 'other')",
                f"name like '{name[:1]}%'",
                f"trim(name) between '{name}' and 'zz'",
                f"ts >= {seed.choice(rows)['ts']}",
                f"not name = '{name}'",
                "name is null",
            ]
        )

    return seed.choice([" and ", " or "]).join(condition() for _ in range(seed.randint(1, 3)))


def drawn_filters(
    rows: list[dict[str, object]], seed: random.Random
) -> Sequence[list[list[Condition]] | str]:
    """The filters of a day, out of as many again of each sort."""
    drawn = [draw(rows, seed) for _ in range(FILTERS_EACH) for draw in (drawn_filter, drawn_text)]
    return sample(drawn, 5)


def asked(condition: Condition | str) -> str | list[Condition]:
    return condition if isinstance(condition, str) else [condition]


def sorted_rows(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


@pytest.mark.parametrize("name", INDEXED)
def test_rows_with_indexes_are_the_rows_without(opened: Opened, name: str) -> None:
    table, seed = opened(name), random.Random(name)
    rows = [row for row in table.read_arrow(use_metadata=False).to_pylist() if row["name"]]
    for drawn in drawn_filters(rows, seed):
        plain = table.read_arrow(filter=drawn, use_metadata=False)
        assert sorted_rows(table.read_arrow(filter=drawn)) == sorted_rows(plain), drawn


@pytest.mark.parametrize(
    ("name", "condition", "index", "skipped"),
    [
        ("cow_build_secondary_done", ("name", "=", "n1"), "by_name", 2),
        ("cow_build_secondary_done", ("name", "in", ["n1", "n3"]), "by_name", 2),
        ("cow_build_secondary_done", ("name", "is null", None), "by_name", 3),
        ("cow_build_secondary_done", ("name", "=", "nothing"), "by_name", 3),
        ("cow_build_secondary_done", ("name", "starts with", "n1"), "by_name", 1),
        ("cow_build_secondary_done", "name like 'n1%' and upper(name) = 'N1'", "by_name", 1),
        ("cow_build_record_done", ("id", "=", "k001"), "record_index", 2),
        ("cow_build_record_partitioned_done", ("id", "=", "k001"), "record_index", 2),
        ("cow_build_bloom_done", ("id", "=", "k001"), "bloom_filters", 2),
        ("cow_build_bloom_done", ("id", "in", ["k001", "nope"]), "bloom_filters", 2),
        ("cow_build_expression_bloom_done", "lower(name) = 'n1'", "by_low", 2),
        ("cow_build_expression_bloom_done", "lower(name) in ('n1', 'n3')", "by_low", 2),
    ],
)
def test_an_index_skips_file_groups_and_says_so(
    opened: Opened, name: str, condition: Condition | str, index: str, skipped: int
) -> None:
    explained = opened(name).explain(filter=asked(condition))
    assert [(one.index, one.skipped_count, one.reason) for one in explained.indexes] == [
        (index, skipped, None)
    ]
    assert f"the index {index} skipped {skipped} file groups" in str(explained)


@pytest.mark.parametrize(
    ("name", "condition", "reason"),
    [
        ("cow_build_secondary_listed", ("name", "=", "n1"), "has not completed"),
        ("cow_indexing_record_listed", ("id", "=", "k001"), "has not completed"),
        ("cow_indexing_record_keys_lost", ("id", "=", "k001"), "ran beside its build"),
        ("cow_indexing_secondary_lost", ("name", "=", "n1"), "ran beside its build"),
        ("cow_indexing_record_rolled_back", ("id", "=", "k001"), "was rolled back"),
        ("mor_secondary_three", ("n", "=", 1), "only one of several"),
        ("cow_build_secondary_done", ("name", ">", "n1"), "does not say which values"),
        ("cow_build_expression_bloom_done", "upper(name) = 'N1'", "it is of lower(name)"),
    ],
)
def test_an_index_that_may_miss_rows_is_not_asked(
    opened: Opened, name: str, condition: Condition | str, reason: str
) -> None:
    explained = opened(name).explain(filter=asked(condition))
    assert any(reason in str(one.reason) for one in explained.indexes)


def test_indexes_combine(opened: Opened) -> None:
    table = opened("cow_build_secondary_done")
    explained = table.explain(filter=[("id", "=", "k001"), ("name", "=", "n2")])
    assert not explained.slices
    assert [(one.index, one.reason) for one in explained.indexes] == [
        ("record_index", None),
        ("by_name", None),
    ]


def test_rows_are_looked_up_by_a_value_of_an_indexed_column(opened: Opened) -> None:
    table = opened("cow_build_secondary_done")
    found = table.lookup(["n1", "new", "nope"], ["id", "name"], by="name").to_pylist()
    assert sorted((row["id"], row["name"]) for row in found) == [("k000", "new"), ("k001", "n1")]
    assert table.lookup([None], by="name").num_rows == 0


def test_a_lookup_by_no_column_is_refused(opened: Opened) -> None:
    with pytest.raises(InvalidRequest) as refused:
        opened("cow_build_secondary_done").lookup(["n1"], by="nam")
    assert refused.value.code == "unknown_column"


def test_the_past_is_not_what_an_index_by_key_is_of(opened: Opened) -> None:
    table = opened("cow_build_secondary_done")
    first = table.timeline().completed()[0].requested
    was = [("name", "=", "n0")]
    assert table.read_arrow(filter=was).num_rows == 0
    assert table.read_arrow(filter=was, as_of=first).num_rows == 1
    reasons = [one.reason for one in table.explain(filter=was, as_of=first).indexes]
    assert reasons == ["it is of the newest rows, not of those of that time"]


def orders() -> Table:
    schema = pa.schema(
        [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("qty", pa.int32())]
    )
    table = Table.create(
        "orders",
        schema,
        key=["id"],
        partition=["city"],
        ordering=["ts"],
        type="mor",
        storage=fresh_memory_storage(),
    )
    for city in range(4):
        rows = [
            {"id": f"k{city}{n}", "city": f"c{city}", "ts": 1, "qty": city * 10 + n}
            for n in range(3)
        ]
        table.upsert(rows)
    return table


def test_partition_statistics_skip_partitions_before_files_are_looked_up() -> None:
    explained = orders().explain(filter=[("qty", "=", 12)])
    assert str(explained).splitlines() == [
        "read: 1 slices, 9 of 9 columns",
        "skipped: 3 partitions; partition statistics exclude (qty == 12)",
        "the index partition_stats skipped 3 partitions",
    ]


def test_statistics_of_partitions_by_another_engine_are_not_believed(opened: Opened) -> None:
    table = opened("cow_build_column_stats_done")
    assert table.read_arrow(filter=[("name", "=", "n1")]).num_rows == 1
    reasons = [str(one.reason) for one in table.explain(filter=[("name", "=", "n1")]).indexes]
    assert any("another engine made the write" in reason for reason in reasons)


def test_nulls_of_files_without_a_column_are_never_skipped() -> None:
    table = orders()
    table.upsert([{"id": "k00", "city": "c0", "ts": 2, "qty": None}])
    assert table.read_arrow(filter=[("qty", "is null", None)]).num_rows == 1


@pytest.mark.parametrize("type", ["cow", "mor"])
def test_indexes_that_are_built_here_serve_and_stay_true(type: str) -> None:
    table, seed = with_all_indexes(type), random.Random(type)
    for step in range(4):
        rows = [row for row in table.read_arrow(use_metadata=False).to_pylist() if row["name"]]
        for drawn in drawn_filters(rows, seed):
            plain = table.read_arrow(filter=drawn, use_metadata=False)
            assert sorted_rows(table.read_arrow(filter=drawn)) == sorted_rows(plain), drawn
        table.upsert(
            [
                {**people(step)[0], "name": None, "ts": 900_000 + step},
                {**people(step)[1], "name": f"Moved{step}", "ts": 900_000 + step},
                {"id": f"new{step}", "p": "q", "name": "New", "ts": step, "n": step},
            ]
        )
        table.delete([f"k{step}2"])
    used = {one.index for one in table.explain(filter="lower(name) = 'n31'").indexes}
    assert "by_low" in used
    reasons = {one.index: one.reason for one in table.explain(filter="name is null").indexes}
    of_lower = "it is of lower(name), and the filter is not"
    assert reasons == {"partition_stats": None, "by_name": None, "by_low": of_lower}


def people(step: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"k{step}{n}",
            "p": f"p{step % 2}",
            "name": f"N{step}{n}",
            "ts": 86_400 * step,
            "n": step * 10 + n,
        }
        for n in range(3)
    ]


def with_all_indexes(type: str) -> Table:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("name", pa.string()),
            ("ts", pa.int64()),
            ("n", pa.int32()),
        ]
    )
    table = Table.create(
        "people",
        schema,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=type,
        index="GLOBAL_SIMPLE",
        properties={"hoodie.parquet.small.file.limit": 0},
        storage=fresh_memory_storage(),
    )
    for step in range(4):
        table.upsert(people(step))
    table.create_index("record_index")
    table.create_index("by_name", ["name"])
    table.create_index("by_low", ["name"], "bloom_filters", {"expr": "lower"})
    days = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    table.create_index("by_day", ["ts"], "column_stats", days)
    table.create_index("bloom_filters", ["id"], "bloom_filters")
    return table
