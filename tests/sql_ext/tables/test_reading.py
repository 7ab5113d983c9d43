"""SELECT: rows, times, changes, and what a query does not touch."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import lakewarden
from tests.small_session import status_of
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.tables.conftest import Make, Row

pytestmark = pytest.mark.xdist_group("spark")

Stored = Callable[[str], list[Row]]


@pytest.mark.parametrize("type", ["cow", "mor"])
def test_a_query_returns_what_the_engine_reads(
    run: Run, make: Make, stored: Stored, tmp_path: Path, type: str
) -> None:
    name = make(type)
    table = lakewarden.Table(str(tmp_path / name))
    table.upsert([{"id": 3, "name": "C", "qty": 33, "city": "Oslo"}])
    assert [tuple(row) for row in run(f"SELECT id, name, qty, city FROM {name} ORDER BY id")] == (
        stored(name)
    )
    whole = run(f"SELECT * FROM {name}")
    expected = [tuple(row.values()) for row in table.read_arrow().to_pylist()]
    assert sorted(map(tuple, whole)) == sorted(expected)
    assert run(f"SELECT count(*) FROM {name}") == [(3,)]
    assert run(f"SELECT qty FROM {name} WHERE name = 'C' AND city = 'Oslo'") == [(33,)]
    assert run(f"SELECT a.id FROM {name} a JOIN {name} b USING (id) WHERE b.qty = 33") == [(3,)]


def test_a_query_leaves_out_partitions_and_files(sql_session: SparkSession, make: Make) -> None:
    name = make(rows="", properties="'hoodie.parquet.small.file.limit' = '0'")
    for first in (0, 100):
        rows = ", ".join(f"({first + n}, 'n', {first + n}, 'Oslo')" for n in range(3))
        sql_session.sql(f"INSERT INTO {name} VALUES {rows}, ({first + 9}, 'n', 1, 'Rome')")

    def files(condition: str) -> int:
        return len(sql_session.sql(f"SELECT name FROM {name} WHERE {condition}").inputFiles())

    assert files("true") == 4
    assert files("city = 'Rome'") == 2
    assert files("city IN ('Bonn', 'Rome')") == 2
    assert files("qty > 200") == 0
    assert files("qty > 50 AND name = 'n'") == 1


def test_a_query_sees_the_table_as_it_is(run: Run, make: Make, tmp_path: Path) -> None:
    name = make()
    run(f"CREATE OR REPLACE TEMPORARY VIEW v_{name} AS SELECT sum(qty) FROM {name}")
    run(f"CACHE TABLE {name}")
    assert run(f"SELECT * FROM v_{name}") == [(60,)]
    lakewarden.Table(str(tmp_path / name)).upsert(
        [{"id": 4, "name": "d", "qty": 40, "city": "Bonn"}]
    )
    assert run(f"SELECT * FROM v_{name}") == [(100,)]
    assert run(f"SELECT sum(qty) FROM {name}") == [(100,)]
    run(f"UNCACHE TABLE {name}")


def test_a_query_sees_the_table_as_it_was(
    run: Run, refused: Refused, make: Make, tmp_path: Path
) -> None:
    name = make()
    first = lakewarden.Table(str(tmp_path / name)).timeline().completed()[-1]
    run(f"DELETE FROM {name} WHERE id = 1")
    then = f"SELECT count(*) FROM {name} VERSION AS OF '{first.completed}'"
    assert run(then) == [(3,)]
    assert run(f"SELECT count(*) FROM {name} TIMESTAMP AS OF '{first.completed}'") == [(3,)]
    assert run(f"SELECT count(*) FROM {name} TIMESTAMP AS OF now()") == [(2,)]
    assert run(
        f"SELECT id FROM {name} VERSION AS OF '{first.completed}' EXCEPT SELECT id FROM {name}"
    ) == [(1,)]
    assert "BAD_TIME" in str(refused(f"SELECT 1 FROM {name} VERSION AS OF 'then'"))
    assert "BAD_TIME" in str(refused(f"SELECT 1 FROM {name} TIMESTAMP AS OF NULL"))
    number = str(refused(f"SELECT 1 FROM {name} TIMESTAMP AS OF {first.completed}"))
    assert "BAD_TIME" in number


def test_changes_are_a_table(run: Run, refused: Refused, make: Make, tmp_path: Path) -> None:
    name = make()
    first = lakewarden.Table(str(tmp_path / name)).timeline().completed()[-1].completed
    run(f"UPDATE {name} SET qty = 0 WHERE id = 2")
    changed = f"SELECT id, qty FROM table_changes('{name}', '{first}')"
    assert run(changed) == [(2, 0)]
    assert run(f"SELECT id FROM table_changes('{tmp_path / name}', since => '{first}')") == [(2,)]
    both = (
        f"SELECT count(*) FROM table_changes(since => '0', `table` => '{name}', until => '{first}')"
    )
    assert run(both) == [(3,)]
    assert "BAD_ARGUMENT" in str(refused(f"SELECT * FROM table_changes('{name}')"))
    assert "BAD_ARGUMENT" in str(refused(f"SELECT * FROM table_changes('{name}', NULL)"))
    assert "NO_TABLE" in str(refused("SELECT * FROM table_changes('nowhere', '0')"))


def test_another_session_reads_and_writes_as_well(
    sql_session: SparkSession, make: Make, stored: Stored
) -> None:
    name = make()
    other = sql_session.newSession()
    other.sql(f"UPDATE {name} SET qty = 1 WHERE id < 3")
    assert other.sql(f"SELECT sum(qty) FROM {name}").collect() == [(32,)]
    assert other.sql(f"SELECT id FROM table_changes('{name}', '0') WHERE qty > 1").count() == 1


def test_an_entry_of_hudi_is_read_where_hudi_is_absent(
    run: Run, sql_session: SparkSession, make: Make, stored: Stored
) -> None:
    name = make()
    catalog = sql_session._jsparkSession.sessionState().catalog()
    jvm = sql_session.sparkContext._jvm
    entry = catalog.getTableMetadata(
        sql_session._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
    )
    parts = [entry.productElement(place) for place in range(entry.productArity())]
    parts[4] = jvm.scala.Option.apply("hudi")
    catalog.alterTable(entry.copy(*parts))
    run(f"DELETE FROM {name} WHERE id = 1")
    assert run(f"SELECT id FROM {name} ORDER BY id") == [(2,), (3,)]


@pytest.mark.parametrize("type", ["cow", "mor"])
def test_frames_and_views_have_all_rows_after_a_clean(
    sql_session: SparkSession, make: Make, tmp_path: Path, type: str
) -> None:
    name = make(type, partitioned=False)
    table = lakewarden.Table(str(tmp_path / name))
    looked_at, never_looked_at = sql_session.table(name), sql_session.table(name)
    sql_session.sql(f"CREATE TEMPORARY VIEW view_of_{name} AS SELECT id, qty FROM {name}")
    assert looked_at.count() == 3
    for qty in range(3):
        table.update_where([("id", ">", 0)], {"qty": qty})
        if type == "mor":
            table.compaction.schedule_and_run()
    assert table.clean(commits_retained=1).files_deleted
    assert looked_at.count() == never_looked_at.count() == 3
    assert {row.qty for row in looked_at.collect()} == {2}
    assert sql_session.sql(f"SELECT * FROM view_of_{name}").count() == 3
    sql_session.sql(f"DROP VIEW view_of_{name}")


def test_a_view_of_a_frame_shows_the_table_as_it_is(
    sql_session: SparkSession, make: Make, tmp_path: Path
) -> None:
    name = make("cow", partitioned=False)
    table = lakewarden.Table(str(tmp_path / name))
    view = f"view_of_frame_of_{name}"
    sql_session.sql(f"SELECT id, qty FROM {name} WHERE id > 1").createOrReplaceTempView(view)
    assert sql_session.table(view).count() == 2
    table.update_where([("id", ">", 0)], {"qty": 77})
    table.clean(commits_retained=1)
    assert {row.qty for row in sql_session.sql(f"SELECT * FROM {view}").collect()} == {77}
    sql_session.sql(f"DROP VIEW {view}")


def test_a_view_of_a_frame_whose_column_is_another_is_refused(
    sql_session: SparkSession, make: Make, tmp_path: Path
) -> None:
    name = make("cow", partitioned=False)
    view = f"view_of_frame_of_{name}"
    sql_session.sql(f"SELECT id, qty FROM {name}").createOrReplaceTempView(view)
    shutil.rmtree(tmp_path / name)
    schema = pa.schema([("id", pa.int32()), ("qty", pa.string())])
    lakewarden.Table.create(str(tmp_path / name), schema, key=["id"])
    with pytest.raises(AnalysisException, match=r"VIEW_OUTDATED.*reads the column name"):
        sql_session.sql(f"SELECT * FROM {view}")
    sql_session.sql(f"DROP VIEW {view}")


@pytest.mark.parametrize("type", ["cow", "mor"])
def test_a_query_by_key_is_answered_without_a_job(
    sql_session: SparkSession, run: Run, make: Make, type: str
) -> None:
    name = make(type)
    before = run(f"SELECT max(_hoodie_commit_time) FROM {name}")[0][0]
    run(f"UPDATE {name} SET qty = 25 WHERE id = 2")
    context = sql_session.sparkContext

    def rows(text: str) -> list[Row]:
        context.setJobGroup(text, "a lookup")
        found = sql_session.sql(text).collect()
        assert list(status_of(sql_session).getJobIdsForGroup(text)) == []
        return sorted(map(tuple, found))

    try:
        assert rows(f"SELECT name, qty FROM {name} WHERE id = 2") == [("b", 25)]
        assert rows(f"SELECT id FROM {name} WHERE id IN (1, 3, 99)") == [(1,), (3,)]
        assert rows(f"SELECT upper(name) FROM {name} WHERE id = 2 AND qty > 20") == [("B",)]
        assert rows(f"SELECT id FROM {name} WHERE id = 2 AND length(city) = 9") == []
        assert rows(f"SELECT qty FROM {name} VERSION AS OF '{before}' WHERE id = 2") == [(20,)]
    finally:
        context.setJobGroup("", "")


VALUED = (
    "id STRING, b BOOLEAN, i TINYINT, s SMALLINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), x BINARY, "
    "day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, list ARRAY<INT>, map MAP<STRING, TIMESTAMP>, "
    "pair STRUCT<one: DATE, two: STRING>"
)
VALUES = (
    "'k', true, 1, 2, 1.5, 2.5, 12.345, X'00FF', DATE '0101-02-03', TIMESTAMP '1890-01-01 12:00:00'"
    ", TIMESTAMP_NTZ '2024-03-31 02:30:00', array(1, null), map('m', TIMESTAMP '2024-10-27 02:30:00"
    "'), named_struct('one', DATE '1999-12-31', 'two', null)"
)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo"])
def test_a_query_by_key_has_the_types_and_values_of_any_other(
    sql_session: SparkSession, run: Run, tmp_path: Path, zone: str
) -> None:
    name = f"valued_{zone.replace('/', '_').lower()}"
    kept = sql_session.conf.get("spark.sql.session.timeZone")
    sql_session.conf.set("spark.sql.session.timeZone", zone)
    try:
        run(
            f"CREATE TABLE {name} ({VALUED}) USING lakewarden LOCATION '{tmp_path / name}'"
            " TBLPROPERTIES (primaryKey = 'id')"
        )
        run(f"INSERT INTO {name} VALUES ({VALUES}), ('other'{', null' * 13})")
        looked_up = sql_session.sql(f"SELECT * FROM {name} WHERE id IN ('k', 'other')")
        scanned = sql_session.sql(f"SELECT * FROM {name} WHERE id LIKE '%'")
        assert "LocalTableScan" in looked_up._jdf.queryExecution().executedPlan().toString()
        assert "LocalTableScan" not in scanned._jdf.queryExecution().executedPlan().toString()
        assert looked_up.schema == scanned.schema
        assert sorted(looked_up.collect()) == sorted(scanned.collect())
    finally:
        run(f"DROP TABLE IF EXISTS {name}")
        sql_session.conf.set("spark.sql.session.timeZone", kept or "UTC")
