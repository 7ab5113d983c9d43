"""SELECT with indexes: how many files a filter leaves, and that the rows are all there."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.golden_tables import GoldenTable
from tests.sql_ext.conftest import Run

pytestmark = pytest.mark.xdist_group("spark")

Named = Callable[[str], str]


@pytest.fixture
def named(run: Run, golden_copy: GoldenTable) -> Iterator[Named]:
    """`named(golden)`: the name in the catalog of a table that Java made with indexes."""
    made = []

    def table(golden: str) -> str:
        run(
            f"CREATE TABLE {golden} USING lakewarden LOCATION '{golden_copy(f'indexing/{golden}')}'"
        )
        made.append(golden)
        return golden

    yield table
    for name in made:
        run(f"DROP TABLE {name}")


@pytest.fixture
def in_the_zone_of_the_index(sql_session: SparkSession) -> Iterator[None]:
    before = sql_session.conf.get("spark.sql.session.timeZone")
    sql_session.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    sql_session.conf.set("spark.sql.session.timeZone", str(before))


def files(session: SparkSession, table: str, condition: str) -> int:
    return len(session.sql(f"SELECT id FROM {table} WHERE {condition}").inputFiles())


@pytest.mark.parametrize(
    ("table", "condition", "count"),
    [
        ("cow_build_secondary_done", "name = 'n1'", 1),
        ("cow_build_secondary_done", "name IN ('n1', 'n3')", 1),
        ("cow_build_secondary_done", "name IS NULL", 0),
        # The rows of a few keys are there when the query is planned: no file is left to be read.
        ("cow_build_record_done", "id = 'k001'", 0),
        ("cow_build_bloom_done", "id = 'k001'", 0),
        ("cow_build_expression_stats_done", "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-02'", 1),
        ("cow_build_expression_stats_done", "'1970-01-02' = from_unixtime(ts, 'yyyy-MM-dd')", 1),
        ("cow_build_expression_stats_done", "from_unixtime(ts, 'yyyy-MM-dd') < '1970-01-01'", 0),
        ("cow_build_expression_stats_done", "from_unixtime(ts, 'yyyy-MM-dd') > '1970-01-01'", 1),
        (
            "cow_build_expression_stats_done",
            "from_unixtime(ts, 'yyyy-MM-dd') BETWEEN '1970-01-02' AND '1970-02-01'",
            1,
        ),
        ("cow_build_expression_stats_done", "from_unixtime(ts, 'yyyy-MM') = '1970-01'", 3),
        ("cow_build_expression_stats_done", "ts = 90000", 1),
        ("cow_build_expression_stats_done", "ts > 86400", 1),
        ("cow_build_expression_bloom_done", "lower(name) = 'n1'", 1),
        ("cow_build_expression_bloom_done", "lower(name) IN ('n1', 'n3')", 1),
        ("cow_build_expression_bloom_done", "lower(name) = 'nothing'", 0),
        ("cow_build_expression_bloom_done", "upper(name) = 'N1'", 3),
    ],
)
@pytest.mark.usefixtures("in_the_zone_of_the_index")
def test_a_filter_leaves_the_files_that_can_match(
    sql_session: SparkSession, named: Named, table: str, condition: str, count: int
) -> None:
    name = named(table)
    rows = sql_session.sql(f"SELECT id FROM {name}").count()
    matching = sql_session.sql(f"SELECT id FROM {name} WHERE {condition}").count()
    others = sql_session.sql(
        f"SELECT id FROM {name} WHERE NOT coalesce({condition}, false)"
    ).count()
    assert (files(sql_session, name, condition), matching + others) == (count, rows)


def test_an_index_of_days_says_nothing_of_the_days_of_another_zone(
    sql_session: SparkSession, named: Named
) -> None:
    name = named("cow_build_expression_stats_done")
    assert sql_session.conf.get("spark.sql.session.timeZone") != "UTC"
    assert files(sql_session, name, "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-02'") == 3
