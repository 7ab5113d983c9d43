"""Statements about indexes reach the procedures, and Spark points at what is wrong with them."""

from pathlib import Path

import pytest

from tests.sql_ext.conftest import Refused, Run

pytestmark = pytest.mark.xdist_group("spark")


def test_a_syntax_error_is_sparks_own_and_points_at_the_word(refused: Refused) -> None:
    error = refused("CREATE INDEX i\nON t NONSENSE (c)")
    assert type(error).__name__ == "ParseException"
    assert (error.getCondition(), error.getSqlState()) == ("PARSE_SYNTAX_ERROR", "42601")
    assert "'NONSENSE'" in str(error)
    assert "line 2, pos 5" in str(error)


def test_tables_are_looked_up(run: Run, refused: Refused) -> None:
    assert refused("DROP INDEX i ON no_such").getCondition() == "LAKEWARDEN_UNKNOWN_TABLE"
    run("CREATE TABLE plain (a INT) USING parquet")
    theirs = refused("CREATE INDEX i ON plain (a)")
    assert not theirs.getCondition().startswith("LAKEWARDEN")
    run("DROP TABLE plain")


def test_calls_need_no_parentheses(run: Run, refused: Refused, orders: Path) -> None:
    assert run("CALL help")
    assert run("/* a */ CALL lakewarden.system.help ;")
    assert refused("CALL show_plans").getCondition() == "LAKEWARDEN_NO_TABLE"


def test_scripts_have_them_too(run: Run, refused: Refused, orders: Path) -> None:
    run("BEGIN CALL help; END")
    script = f"BEGIN SCHEDULE COMPACTION ON '{orders}'; DROP INDEX i ON no_such; END"
    assert refused(script).getCondition() == "LAKEWARDEN_UNKNOWN_TABLE"


def test_explanations_have_them_too(run: Run, orders: Path) -> None:
    assert "run_compaction" in run(f"EXPLAIN SCHEDULE COMPACTION ON '{orders}'")[0][0]


def test_hudis_old_statements_run(run: Run, orders: Path) -> None:
    assert run(f"SHOW COMPACTION ON '{orders}' LIMIT 3") == []
    assert run(f"SCHEDULE COMPACTION ON '{orders}'") is not None
