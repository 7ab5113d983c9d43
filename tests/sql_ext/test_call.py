"""CALL: how names and arguments reach a procedure."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakewarden
from tests.sql_ext.conftest import Refused, Run

pytestmark = pytest.mark.xdist_group("spark")

PREFIXES = ("", "system.", "lakewarden.", "lakewarden.system.", "any.thing.", "`lakewarden`.")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["show_plans", "SHOW_Plans", "`show_plans`"])
def test_only_the_last_part_of_a_name_matters(
    run: Run, orders: Path, prefix: str, name: str
) -> None:
    assert run(f"CALL {prefix}{name}(path => '{orders}')") == []


@pytest.mark.parametrize(
    ("call", "condition", "state"),
    [
        ("no_such()", "LAKEWARDEN_UNKNOWN_PROCEDURE", "42883"),
        ("lakewarden.system.no_such()", "LAKEWARDEN_UNKNOWN_PROCEDURE", "42883"),
        ("show_plans(tabel => 'a')", "LAKEWARDEN_UNKNOWN_ARGUMENT", "4274K"),
        ("show_plans(table => 'no_such')", "LAKEWARDEN_UNKNOWN_TABLE", "42P01"),
        ("show_plans(table => 'a', TABLE => 'b')", "LAKEWARDEN_REPEATED_ARGUMENT", "4274K"),
        ("show_plans('a', table => 'b')", "LAKEWARDEN_REPEATED_ARGUMENT", "4274K"),
        ("show_plans(limit => 1, 'b')", "UNEXPECTED_POSITIONAL_ARGUMENT", "4274K"),
        ("cancel_plan()", "LAKEWARDEN_MISSING_ARGUMENT", "4274K"),
    ],
)
def test_bad_calls_have_a_condition_and_a_state(
    refused: Refused, call: str, condition: str, state: str
) -> None:
    for statement in (f"CALL {call}", f"CALL {call};"):
        error = refused(statement)
        assert (error.getCondition(), error.getSqlState()) == (condition, state)
        assert condition in str(error)


def test_explaining_does_nothing(run: Run) -> None:
    (plan,) = run("EXPLAIN CALL show_plans(path => '/no/such/table')")
    assert "show_plans" in plan[0]


def test_later_sessions_have_the_procedures(sql_session: SparkSession, orders: Path) -> None:
    later = sql_session.newSession()
    assert later.sql(f"CALL show_plans(path => '{orders}')").collect() == []


def test_there_is_a_list_of_procedures(run: Run) -> None:
    for place in ("", " IN lakewarden", " FROM lakewarden.system", " FROM system"):
        assert "cancel_plan" in [row.procedure_name for row in run(f"SHOW PROCEDURES{place}")]


def test_a_procedure_is_described(run: Run) -> None:
    text = "\n".join(row[0] for row in run("DESCRIBE PROCEDURE cancel_plan"))
    assert "instant STRING, required" in text


def test_names_of_the_catalog_are_told_from_those_it_does_not_have(
    run: Run, refused: Refused
) -> None:
    run("CREATE DATABASE lake")
    run("CREATE TABLE lake.odd_name (a INT) USING parquet")
    assert refused("CALL show_plans('lake.odd_name')").getSqlState() == "42809"
    assert "'odd_name'" in str(refused("CALL show_plans('lake.odd_nam')"))
    assert run("CALL table_health(database => 'lake')") == []
    assert "'lake'" in str(refused("CALL table_health(database => 'lke')"))
    run("DROP DATABASE lake CASCADE")


def test_a_call_runs_once_and_its_explanation_never(
    sql_session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = lakewarden.Table.create(path, pa.schema([("id", pa.string())]), ["id"])
    table.upsert(pa.table({"id": ["1"]}))
    statement = f"CALL run_clean(path => '{path}')"
    before = len(table.timeline().instants)
    sql_session.sql(f"EXPLAIN {statement}").collect()
    assert len(table.timeline().instants) == before
    called = sql_session.sql(f"CALL create_savepoint(path => '{path}')")
    assert [called.count() for _ in range(3)] == [1, 1, 1]
    assert called.collect()
    assert len(table.timeline().instants) == before + 1


def test_an_interrupted_statement_ends(
    sql_session: SparkSession, refused: Refused, orders: Path
) -> None:
    thread = sql_session.sparkContext._jvm.java.lang.Thread
    thread.currentThread().interrupt()
    try:
        error = refused(f"CALL show_plans(path => '{orders}')")
    finally:
        thread.interrupted()
    assert (error.getCondition(), error.getSqlState()) == ("LAKEWARDEN_INTERRUPTED", "57014")


# Every way to write the same call; `{p}` is the table's path.
SAME_CALLS = (
    "show_timeline(path => '{p}', limit => 5)",
    "show_timeline(NULL, '{p}', 5)",
    "show_timeline(NULL, '{p}', limit => 5)",
    "show_timeline(limit => 5, path => '{p}')",
    "show_timeline(path => '{p}', limit => 2 + 3)",
    "show_timeline(path => '{p}', limit => '5')",
    "show_timeline(path => '{p}', limit => 5L)",
    "show_timeline(path => '{p}', limit => CAST(5 AS SMALLINT))",
    "show_timeline(path => concat('{p}', ''), LIMIT => 5)",
    'show_timeline(Path => "{p}", limit => 5)',
    "show_timeline(path => '{p}', limit => 5, showArchived => false)",
    "show_timeline(path => '{p}', limit => 5, show_archived => 'FALSE')",
    "show_timeline(path => '{p}', limit => 5, startTime => 20200101000000000)",
    "show_timeline(path => '{p}', limit => 5, start_time => '20200101000000000')",
    "show_timeline(table => '{p}', limit => 5)",
    "show_timeline(path => '{p}', limit => 5, filter => NULL)",
)


@pytest.mark.parametrize("call", SAME_CALLS)
def test_a_call_can_be_written_in_many_ways(run: Run, orders: Path, call: str) -> None:
    expected = run(f"CALL show_timeline(path => '{orders}')")
    assert expected
    assert run("CALL " + call.replace("{p}", str(orders))) == expected


def test_arguments_can_be_parameters(sql_session: SparkSession, orders: Path) -> None:
    expected = sql_session.sql(f"CALL show_timeline(path => '{orders}')").collect()
    by_name = sql_session.sql(
        "CALL show_timeline(path => :p, limit => :n)", {"p": str(orders), "n": 5}
    )
    by_place = sql_session.sql("CALL show_timeline(NULL, ?, ?)", [str(orders), 5])
    assert by_name.collect() == by_place.collect() == expected


def test_what_is_executed_immediately_has_parameters(run: Run, orders: Path) -> None:
    immediate = f"EXECUTE IMMEDIATE 'CALL show_timeline(path => ?)' USING '{orders}'"
    assert run(immediate) == run(f"CALL show_timeline(path => '{orders}')")


def test_options_are_a_text_or_a_map(refused: Refused, orders: Path) -> None:
    call = f"CALL run_compaction(op => 'schedule', path => '{orders}', dry_run => true, options => "
    for options in ("'no.such=1'", "map('no.such', '1')", "map('no.such', 1)"):
        assert "no.such" in str(refused(f"{call}{options})"))


@pytest.mark.parametrize(
    ("argument", "shown", "position"),
    [
        ("orders", "orders", 24),
        ("'/' || orders", "orders", 31),
        ("t.path", "t.path", 24),
        ("x -> x", "x -> x", 24),
        ("rand()", "rand()", 24),
        ("max('x')", "max('x')", 24),
        ("(SELECT max(id) FROM range(3))", "(SELECT max(id) FROM range(3))", 24),
    ],
)
def test_an_argument_that_is_no_constant_is_pointed_at(
    refused: Refused, argument: str, shown: str, position: int
) -> None:
    error = refused(f"CALL show_plans(path => {argument})")
    assert error.getCondition() == "LAKEWARDEN_ARGUMENT_NOT_CONSTANT"
    assert error.getSqlState() == "42K08"
    assert f"no constant: {shown}." in str(error)
    assert str(error).endswith(f"line 1 pos {position}")


def test_variables_are_constants(run: Run, orders: Path) -> None:
    run("DECLARE OR REPLACE VARIABLE place STRING")
    run(f"SET VAR place = (SELECT '{orders}' FROM range(1))")
    try:
        assert run("CALL show_timeline(path => place)")
    finally:
        run("DROP TEMPORARY VARIABLE place")
