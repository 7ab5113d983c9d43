"""SELECT: rows, times, changes, and what a query does not touch."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import lakewarden
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
