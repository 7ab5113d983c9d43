"""Forms of statements that Hudi's users type, each in a small story of its own.

A story is statements, a query, and its rows. Statements that begin with `!` are refused.
"""

from pathlib import Path

import pytest

from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.tables.stories import BY_NAME, COPIES, STORIES, statements

pytestmark = pytest.mark.xdist_group("spark")

KEYS = [
    ("FLOAT", "1.5", "1.5"),
    ("DOUBLE", "0.0001D", "1.0E-4"),
    ("DECIMAL(10, 3)", "1.5", "1.500"),
    ("DATE", "DATE'2021-01-05'", "2021-01-05"),
    ("BOOLEAN", "true", "true"),
]
PARTITIONS = [
    ("FLOAT", "1.5", "dt=1.5"),
    ("DOUBLE", "10D", "dt=10.0"),
    ("DECIMAL(10, 2)", "10.1", "dt=10.10"),
    ("DATE", "DATE'2021-01-05'", "dt=2021-01-05"),
    ("BOOLEAN", "true", "dt=true"),
    ("TIMESTAMP", "TIMESTAMP'2021-01-05 12:13:14'", None),
]
SAID = [
    [("deltacommit", "COMPLETED", 1, 0)],
    [(1,)],
    [("city=Rome", True, 0)],
    [("__all_partitions__", ["city=Rome"])],
    [(7,)],
    [(1,)],
]


@pytest.mark.parametrize("name", STORIES)
def test_stories_end_as_with_hudi(run: Run, refused: Refused, tmp_path: Path, name: str) -> None:
    text, query, rows = STORIES[name]
    number = list(STORIES).index(name)
    using = f"USING {('hudi', 'lakewarden')[number % 2]}"
    places = {"t": f"story{number}", "at": tmp_path / "table", "using": using}
    for statement in statements(text):
        if statement.startswith("!"):
            assert "LAKEWARDEN" in str(refused(statement[1:].format(**places))), statement
        else:
            run(statement.format(**places))
    assert run(query.format(**places)) == rows


def test_keys_and_partitions_have_all_types_that_hudi_spells(run: Run, tmp_path: Path) -> None:
    for number, (type_, value, key) in enumerate(KEYS):
        run(
            f"CREATE TABLE keyed (id {type_}, name STRING, ts INT) USING hudi"
            f" LOCATION '{tmp_path / f'k{number}'}'"
            " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
        )
        run(f"INSERT INTO keyed VALUES ({value}, 'a', 1)")
        run(f"INSERT INTO keyed VALUES ({value}, 'b', 2)")
        found = run(f"SELECT name, _hoodie_record_key FROM keyed WHERE id = {value}")
        assert found == [("b", key)], type_
        run("DROP TABLE keyed")
    for number, (type_, value, path) in enumerate(PARTITIONS):
        run(
            f"CREATE TABLE parted (id INT, dt {type_}) USING hudi PARTITIONED BY (dt) LOCATION"
            f" '{tmp_path / f'p{number}'}' TBLPROPERTIES (primaryKey = 'id')"
        )
        run(f"INSERT INTO parted VALUES (1, {value}), (2, NULL)")
        found = run(f"SELECT id, _hoodie_partition_path FROM parted WHERE dt = {value}")
        assert [row.id for row in found] == [1], type_
        assert path is None or found[0][1] == path
        run(f"INSERT OVERWRITE parted PARTITION (dt = {value}) VALUES (3)")
        assert run("SELECT id FROM parted ORDER BY id") == [(2,), (3,)]
        run(f"ALTER TABLE parted DROP PARTITION (dt = {value})")
        assert run("SELECT id FROM parted") == [(2,)]
        run("DROP TABLE parted")


def test_functions_of_hudis_tell_the_state_of_a_table(
    run: Run, refused: Refused, tmp_path: Path
) -> None:
    place = {"t": "told", "at": tmp_path / "told"}
    run(
        "CREATE TABLE {t} (id INT, qty INT, city STRING) USING hudi PARTITIONED BY (city)"
        " LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id', type = 'mor',"
        " hoodie.metadata.record.index.enable = 'true')".format(**place)
    )
    assert run("SELECT key FROM hudi_metadata('told')") == [("__all_partitions__",)]
    run("INSERT INTO told VALUES (1, 7, 'Rome')")
    for query, rows in zip(statements(BY_NAME), SAID, strict=True):
        assert run(query.format(**place)) == rows, query
    assert "'yes'" in str(refused("SELECT * FROM hudi_query_timeline('told', 'yes')"))
    assert "BAD_ARGUMENT" in str(refused("SELECT * FROM hudi_metadata('told', 'x')"))
    assert "BAD_ARGUMENT" in str(refused("SELECT * FROM hudi_filesystem_view()"))
    run("DROP TABLE told")


def test_copies_have_the_rows_of_their_query(run: Run, refused: Refused, tmp_path: Path) -> None:
    place = {"t": "copied", "at": tmp_path / "copied", "first": ""}
    run(
        "CREATE TABLE {t} (id INT, city STRING) USING hudi LOCATION '{at}'"
        " TBLPROPERTIES (primaryKey = 'id', type = 'mor')".format(**place)
    )
    run("INSERT INTO copied VALUES (1, 'Oslo')")
    (timeline,) = run("SELECT completion_time FROM hudi_query_timeline('copied')")
    place["first"] = timeline[0]
    run("UPDATE copied SET city = 'Rome'")
    for statement in statements(COPIES):
        assert run(statement.format(**place)) == [(0,)]
    assert run("SELECT id, city FROM copied_copy") == [(1, "Rome"), (1, "Rome")]
    assert run("SELECT * FROM copied_new") == [(1, "Oslo")]
    assert run("SELECT city FROM copied_ro") == [("Oslo",)]
    assert run("SELECT city FROM copied_view") == [("Oslo",)]
    assert run("SELECT city FROM global_temp.copied_view") == [("Rome",)]
    again = refused("CALL copy_to_temp_view(table => 'copied', view_name => 'copied_view')")
    assert "STATEMENT_FAILED" in str(again)
    assert "report" not in str(again)
    for name in ("copied", "copied_copy", "copied_new", "copied_ro"):
        run(f"DROP TABLE {name}")
