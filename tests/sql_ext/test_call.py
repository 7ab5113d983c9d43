"""CALL: how names and arguments reach a procedure."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
        assert condition in error.getMessage()


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
