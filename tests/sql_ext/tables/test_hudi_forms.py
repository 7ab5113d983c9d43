"""Forms of statements that Hudi's users type, each in a small story of its own.

A story is statements, a query, and its rows. Statements that begin with `!` are refused.
"""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.sql_ext.conftest import Refused, Run

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
STORIES = {
    "names in any case and of any letters": (
        """
        CREATE TABLE {t} (ID INT, `价格` DOUBLE, TS BIGINT, Dt STRING) {using}
          PARTITIONED BY (DT) LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')
        INSERT INTO {t} VALUES (1, 1.5, 1, 'x'), (2, 2.5, 1, 'y')
        MERGE INTO {t} t USING (SELECT 1 AS id, 3.5 AS `价格`, 2 AS ts, 'x' AS dt) s ON t.id = s.id
          WHEN MATCHED THEN UPDATE SET *
        DELETE FROM {t} WHERE dT = 'y'
        """,
        "SELECT id, `价格` FROM {t} WHERE `价格` > 3",
        [(1, 3.5)],
    ),
    "keys and ordering inside of structs": (
        """
        CREATE TABLE {t} (id INT, a STRUCT<b: STRUCT<c: STRING>, d: BIGINT>) {using}
          LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'a.b.c', preCombineField = 'a.d', type = 'mor')
        INSERT INTO {t} VALUES (1, named_struct('b', named_struct('c', 'k'), 'd', 5L))
        INSERT INTO {t} VALUES (2, named_struct('b', named_struct('c', 'k'), 'd', 4L))
        MERGE INTO {t} t USING (SELECT 'k' AS c, 3 AS id) s ON t.a.b.c = s.c
          WHEN MATCHED THEN UPDATE SET id = t.id + s.id
        !CREATE TABLE {t}_no (id INT, a STRUCT<b: INT>) {using} LOCATION '{at}_no'
          TBLPROPERTIES (primaryKey = 'a.c')
        """,
        "SELECT id, a.d, _hoodie_record_key FROM {t}",
        [(4, 5, "k")],
    ),
    "texts with lengths": (
        """
        CREATE TABLE {t} (id INT, name VARCHAR(5), s STRUCT<c: CHAR(3)>) {using} LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} VALUES (1, 'abc', named_struct('c', 'x'))
        ALTER TABLE {t} ADD COLUMN more VARCHAR(7)
        """,
        "SELECT name, s.c, more FROM {t}",
        [("abc", "x", None)],
    ),
    "a query that names the columns is taken by name": (
        """
        CREATE TABLE {t} (id INT, dt STRING, name STRING, qty DOUBLE) {using} PARTITIONED BY (dt)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} PARTITION (dt = 'x') SELECT 1.5 AS qty, 1 AS id, 'a' AS name
        INSERT INTO {t} PARTITION (dt) SELECT 2 AS id, 'y' AS dt, 'b' AS name, 2.5 AS qty
        INSERT INTO {t} SELECT 'y' AS DT, 3 AS ID, 'c' AS NAME, 3.5 AS QTY
        INSERT INTO {t} SELECT 4, 'd', 4.5, 'z'
        INSERT INTO {t} SELECT _hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key,
          _hoodie_partition_path, _hoodie_file_name, dt, id + 4 AS id, name, qty
          FROM {t} WHERE id = 1
        """,
        "SELECT id, name, qty, dt FROM {t} ORDER BY id",
        [
            (1, "a", 1.5, "x"),
            (2, "b", 2.5, "y"),
            (3, "c", 3.5, "y"),
            (4, "d", 4.5, "z"),
            (5, "a", 1.5, "x"),
        ],
    ),
    "a table like another one": (
        """
        CREATE TABLE {t}_model (id INT, name STRING, dt STRING) {using} PARTITIONED BY (dt)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id,name', type = 'mor')
        CREATE TABLE {t} LIKE {t}_model {using} LOCATION '{at}_like'
        CREATE TABLE IF NOT EXISTS {t} LIKE {t}_model {using}
        INSERT INTO {t} VALUES (1, 'a', 'x')
        CREATE TABLE {t}_plain (id INT, name STRING) USING parquet LOCATION '{at}_plain'
        CREATE TABLE {t}_of_plain LIKE {t}_plain {using} LOCATION '{at}_of_plain'
          TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t}_of_plain VALUES (1, 'a')
        !CREATE TABLE {t}_no LIKE {t}_model USING parquet
        """,
        "SELECT _hoodie_record_key, _hoodie_partition_path FROM {t}"
        " UNION SELECT _hoodie_record_key, name FROM {t}_of_plain ORDER BY 1",
        [("1", "a"), ("id:1,name:a", "dt=x")],
    ),
    "a CTAS whose rows were wrong leaves its place to the next": (
        """
        !CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT CAST(NULL AS INT) AS id
        !CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id', type = 'mor')
          AS SELECT 1 AS id
        CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT 1 AS id
        !CREATE TABLE {t}_other {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT 2 AS id
        """,
        "SELECT id FROM {t}",
        [(1,)],
    ),
    "partitions without rows": (
        """
        CREATE TABLE {t} (id INT, y STRING, m INT) {using} PARTITIONED BY (y, m)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        ALTER TABLE {t} ADD PARTITION (y = '2023', m = 8) PARTITION (Y = '2023', m = '9')
        ALTER TABLE {t} ADD IF NOT EXISTS PARTITION (y = '2023', m = 8)
        !ALTER TABLE {t} ADD PARTITION (y = '2023', m = 8)
        !ALTER TABLE {t} ADD PARTITION (y = '2023')
        !ALTER TABLE {t} ADD PARTITION (y = '2023', m = 'x')
        ALTER TABLE {t} DROP COLUMN IF EXISTS nothing
        """,
        "SHOW PARTITIONS {t}",
        [("y=2023/m=8",), ("y=2023/m=9",)],
    ),
    "fields inside of columns come, go and change their names": (
        """
        CREATE TABLE {t} (id INT, u STRUCT<name: STRING, age: INT>,
          m MAP<STRING, STRUCT<n: STRING>>,
          x MAP<STRING, INT>, ts BIGINT) {using}
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor')
        INSERT INTO {t} VALUES (1, struct('a', 29), map('k', struct('v')), map('t', 9), 1)
        ALTER TABLE {t} ADD COLUMNS (u.score INT COMMENT 'points' AFTER age, u.first STRING FIRST)
        ALTER TABLE {t} RENAME COLUMN U.NAME TO title
        ALTER TABLE {t} RENAME COLUMN m.value.n TO nn
        ALTER TABLE {t} ALTER COLUMN u.age TYPE BIGINT
        ALTER TABLE {t} ALTER COLUMN u.age AFTER title
        ALTER TABLE {t} ALTER COLUMN x.value TYPE DOUBLE
        ALTER TABLE {t} DROP COLUMNS (u.first)
        ALTER TABLE {t} ADD COLUMNS (u.first INT)
        !ALTER TABLE {t} ADD COLUMNS (u.no INT NOT NULL)
        UPDATE {t} SET u = named_struct('title', 'b', 'age', 5000000000, 'score', 7, 'first', 8)
          WHERE u.age = 30
        INSERT INTO {t} VALUES (2, struct('c', 30, 5, 6), map('k', struct('w')), map('t', 1.5), 1)
        """,
        "SELECT id, u.title, u.age, u.score, u.first, m['k'].nn, x['t'] FROM {t} ORDER BY id",
        [(1, "a", 29, None, None, "v", 9.0), (2, "c", 30, 5, 6, "w", 1.5)],
    ),
    "types change as Hudi changes them": (
        """
        CREATE TABLE {t} (id INT, i INT, f FLOAT, d DATE, c DECIMAL(10, 4), b BIGINT) {using}
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} VALUES (1, 11, 101.01, DATE'2021-12-25', 1.5, 7)
        ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT
        ALTER TABLE {t} ALTER COLUMN i TYPE DOUBLE
        ALTER TABLE {t} ALTER COLUMN i TYPE DECIMAL(16, 4)
        ALTER TABLE {t} CHANGE COLUMN f f STRING
        ALTER TABLE {t} ALTER COLUMN d TYPE STRING
        ALTER TABLE {t} ALTER COLUMN c TYPE DECIMAL(18, 8)
        ALTER TABLE {t} ALTER COLUMN b TYPE STRING
        INSERT INTO {t} VALUES (2, 1.5, 'text', 'none', 2.5, 'x')
        !ALTER TABLE {t} ALTER COLUMN d TYPE DATE
        """,
        "SELECT id, i, f, d, c, b FROM {t} ORDER BY id",
        [
            (1, Decimal("11.0000"), "101.01", "2021-12-25", Decimal("1.50000000"), "7"),
            (2, Decimal("1.5000"), "text", "none", Decimal("2.50000000"), "x"),
        ],
    ),
    "a table without partitions shows none": (
        "CREATE TABLE {t} (id INT) {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')",
        "SHOW PARTITIONS {t}",
        [],
    ),
}
BY_NAME = """
SELECT action, state, total_records_written, total_write_errors FROM hudi_query_timeline('{t}')
SELECT count(*) FROM hudi_query_timeline('{at}', 'true') WHERE file_name LIKE '%.deltacommit'
SELECT partition_path, base_file_size > 0, log_file_count
  FROM hudi_filesystem_view('{t}', 'city=R*')
SELECT key, map_keys(filesystemMetadata) FROM hudi_metadata('{t}') WHERE type = 1
SELECT ColumnStatsMetadata.minValue.member1.value FROM hudi_metadata('{t}')
  WHERE type = 3 AND ColumnStatsMetadata.columnName = 'qty'
SELECT count(recordIndexMetadata.instantTime) FROM hudi_metadata('{at}') WHERE type = 5
"""
SAID = [
    [("deltacommit", "COMPLETED", 1, 0)],
    [(1,)],
    [("city=Rome", True, 0)],
    [("__all_partitions__", ["city=Rome"])],
    [(7,)],
    [(1,)],
]


def statements(text: str) -> list[str]:
    """The statements of a story: lines that are further in go on with the one above."""
    lines = [line for line in text.splitlines() if line.strip()]
    depth = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    found: list[str] = []
    for line in lines:
        if line[depth].isspace():
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    return found


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


COPIES = """
CALL copy_to_table(table => '{t}', new_table => '{t}_copy')
CALL copy_to_table(table => '{t}', new_table => '{t}_copy', save_mode => 'append')
CALL copy_to_table('{t}', 'incremental', '{t}_new', '0', '{first}', columns => 'id,city')
CALL copy_to_table(path => '{at}', query_type => 'read_optimized', new_table => '{t}_ro')
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view')
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view', as_of_instant => '{first}',
  replace => true)
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view', `global` => true)
"""


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
