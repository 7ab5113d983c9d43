"""Table functions answer as the procedures do, in any session, and along a column of paths."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden import Table
from lakewarden.procedures.binding import invoke
from lakewarden.procedures.declaring.caller import PlainCaller, TableAddress
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.sql_ext.table_functions import TABLE_FUNCTIONS, register
from lakewarden.sql_ext.table_functions.handler import reported
from lakewarden.sql_ext.table_functions.known_tables import OneTable
from tests.golden_tables import GoldenTable
from tests.sql_ext.conftest import Refused

pytestmark = pytest.mark.xdist_group("spark")

TABLE = "mor_compaction_requested"
# What grows older between two questions.
AGING = frozenset({"age_seconds", "value"})


def answer_of_procedure(name: str, path: Path) -> list[Mapping[str, object]]:
    function = TABLE_FUNCTIONS[name]
    columns = [column.name for column in function.procedure.columns]
    arguments = {"path": str(path), **function.arguments}
    rows = invoke(function.procedure, PlainCaller(), (), arguments)
    return [as_spark_has_it(dict(zip(columns, row, strict=True))) for row in rows]


def as_spark_has_it(row: Mapping[str, object]) -> Mapping[str, object]:
    """Spark has lists for tuples, and times without a zone."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in row.items()
        if name not in AGING and not hasattr(value, "tzinfo")
    }


@pytest.fixture(scope="module", params=["enabled", "made later"])
def session(sql_session: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """A session that was enabled, and one that was made of it."""
    return sql_session if request.param == "enabled" else sql_session.newSession()


@pytest.mark.parametrize("name", sorted(TABLE_FUNCTIONS))
def test_a_function_answers_as_its_procedure(
    name: str, session: SparkSession, golden: GoldenTable
) -> None:
    path = golden(TABLE)
    asked = session.sql(f"SELECT * FROM {name}('{path}')")
    assert asked.columns == [one.name for one in TABLE_FUNCTIONS[name].procedure.columns]
    found = [as_spark_has_it(row.asDict()) for row in asked.collect()]
    assert found == answer_of_procedure(name, path)


def test_rows_can_be_filtered_and_joined(session: SparkSession, golden: GoldenTable) -> None:
    path = golden(TABLE)
    (row,) = session.sql(
        "SELECT plan.instant, count(*) AS files"
        f" FROM lakewarden_plans('{path}') plan CROSS JOIN lakewarden_files('{path}') file"
        " WHERE plan.service = 'compaction' AND file.kind = 'log' GROUP BY plan.instant"
    ).collect()
    logs = [log for slice_ in Table(str(path)).file_slices() for log in slice_.log_files]
    assert row.files == len(logs)


def test_functions_go_along_a_column_of_paths(session: SparkSession, golden: GoldenTable) -> None:
    paths = [golden(name) for name in (TABLE, "mor_secondary_index")]
    rows = [(str(path),) for path in paths] + [(None,)]
    session.createDataFrame(rows, "path string").createOrReplaceTempView("tables_to_see")
    found = session.sql(
        "SELECT t.path, index.index_name"
        " FROM tables_to_see t, LATERAL lakewarden_indexes(t.path) index"
    ).collect()
    assert {(row.path, row.index_name) for row in found} == {
        (str(path), view.name) for path in paths for view in Table(str(path)).index_states()
    }


@pytest.fixture
def named(sql_session: SparkSession, golden: GoldenTable) -> Iterator[str]:
    """The name of a table in a database of its own."""
    sql_session.sql("CREATE DATABASE for_functions")
    sql_session.sql(f"CREATE TABLE for_functions.t USING lakewarden LOCATION '{golden(TABLE)}'")
    yield "for_functions.t"
    sql_session.sql("DROP DATABASE for_functions CASCADE")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM lakewarden_commits('{name}')",
        "SELECT * FROM lakewarden_commits(path => '{name}')",
        "SELECT * FROM lakewarden_commits(table => '{name}')",
        "SELECT * FROM lakewarden_commits('spark_catalog.{name}')",
        "SELECT * FROM lakewarden_commits(concat('for_', 'functions.t'))",
        "SELECT commit.* FROM range(1), LATERAL lakewarden_commits('{name}') commit",
        "WITH commits AS (SELECT * FROM lakewarden_commits('{name}')) SELECT * FROM commits",
    ],
)
def test_tables_are_named(
    sql_session: SparkSession, golden: GoldenTable, named: str, query: str
) -> None:
    by_path = sql_session.sql(f"SELECT * FROM lakewarden_commits('{golden(TABLE)}')").collect()
    assert sql_session.sql(query.format(name=named)).collect() == by_path


@pytest.mark.parametrize(
    "query",
    [
        "EXECUTE IMMEDIATE 'SELECT * FROM lakewarden_commits(?)' USING '{name}'",
        "BEGIN DECLARE place STRING DEFAULT '{name}'; SELECT * FROM lakewarden_commits(place); END",
    ],
)
def test_scripts_name_tables(sql_session: SparkSession, named: str, query: str) -> None:
    plain = sql_session.sql(f"SELECT * FROM lakewarden_commits('{named}')").collect()
    assert sql_session.sql(query.format(name=named)).collect() == plain


def test_a_name_can_be_a_parameter(sql_session: SparkSession, named: str) -> None:
    query = "SELECT * FROM lakewarden_commits(:table)"
    assert sql_session.sql(query, {"table": named}).collect()


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        ("'no.such'", "42P01"),
        ("'a b'", "42602"),
        ("'/no/such'", "42000"),
        ("", "42605"),
        ("'/a', '/b'", "42605"),
        ("place => '/a'", "42605"),
    ],
)
def test_what_is_no_table_is_refused_without_a_stack(
    refused: Refused, arguments: str, state: str
) -> None:
    assert refused(f"SELECT * FROM lakewarden_commits({arguments})").getSqlState() == state


IN_COLUMN = "SELECT f.* FROM VALUES ('{path}') t(path), LATERAL {name}(t.path) f"


@pytest.mark.parametrize("query", ["SELECT * FROM {name}('{path}')", IN_COLUMN])
def test_damage_is_one_error_without_a_stack(
    refused: Refused, golden_copy: GoldenTable, query: str
) -> None:
    path = golden_copy(TABLE)
    for commit in (path / ".hoodie" / "timeline").glob("*.deltacommit"):
        commit.write_bytes(b"this is no commit")
    error = refused(query.format(name="lakewarden_commits", path=path))
    assert error.getCondition() == "LAKEWARDEN_CORRUPT_FILE"
    assert error.getSqlState() == "XX001"
    assert ".py" not in str(error)


def test_an_error_that_nobody_foresaw_is_told_behind_the_rows() -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        yield (1, "a")
        raise KeyError("gone")

    row, last = reported(rows(), 2)
    assert row == (1, "a", None)
    assert last[:2] == (None, None)
    assert last[2][:2] == ["UNEXPECTED_FAILURE", "XX000"]  # type: ignore[index]
    assert "KeyError: 'gone'" in last[2]  # type: ignore[operator]


def test_what_the_catalog_knows_of_a_storage_is_heeded() -> None:
    at_entry = TableAddress("/lake/orders", {"key": "of the entry"})
    session = {"lakewarden.storage.key": "of the session"}
    caller = OneTable(None, Permissions(), session, at_entry)
    assert caller.place_at("/lake/orders") == at_entry
    assert caller.place_at("/lake/other").storage_options == {"key": "of the session"}


def test_a_column_has_paths(sql_session: SparkSession, named: str) -> None:
    query = IN_COLUMN.format(path=named, name="lakewarden_commits")
    with pytest.raises(PySparkException, match="is not a path"):
        sql_session.sql(query).collect()


def test_functions_look_only_where_they_may(
    sql_session: SparkSession, golden: GoldenTable, tmp_path: Path
) -> None:
    query = IN_COLUMN.format(path=golden(TABLE), name="lakewarden_plans")
    register(sql_session, PlainCaller(permissions=Permissions(allowed_roots=(str(tmp_path),))))
    try:
        for session in (sql_session, sql_session.newSession()):
            with pytest.raises(PySparkException, match="may not use"):
                session.sql(query).collect()
    finally:
        register(sql_session)
