"""What Hudi's users type: its settings, names and statements, one form after the other."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewarden
from tests.engine.services.test_hudi_settings import PASTED
from tests.sampling import sample
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.tables.conftest import Make
from tests.sql_ext.tables.stories import ALTERED, NOT_ALTERED

pytestmark = pytest.mark.xdist_group("spark")


def test_a_table_takes_properties_that_only_hudi_has(
    run: Run, refused: Refused, tmp_path: Path
) -> None:
    created = (
        f"CREATE TABLE typed (id INT, ts BIGINT, city STRING) USING lakewarden"
        f" PARTITIONED BY (city) LOCATION '{tmp_path / 'typed'}' TBLPROPERTIES ("
        " primaryKey = 'id', preCombineField = 'ts', type = 'mor', 'owner team' = 'lake',"
        " 'hoodie.upsert.shuffle.parallelism' = '2',"
        " 'hoodie.datasource.write.payload.class' ="
        " 'org.apache.hudi.common.model.DefaultHoodieRecordPayload',"
        " 'hoodie.table.keygenerator.class' = 'org.apache.hudi.keygen.ComplexKeyGenerator',"
        " 'hoodie.datasource.hive_sync.enable' = 'false'{more})"
    )
    for wrong, nearest in [
        ("primaryKeys = 'id'", "primaryKey"),
        ("'hoodie.upsert.shufle.parallelism' = '2'", "hoodie.upsert.shuffle.parallelism"),
    ]:
        assert repr(nearest) in str(refused(created.format(more=f", {wrong}")))
    dropped = "hoodie.datasource.write.drop.partition.columns"
    assert f"{dropped}=true" in str(refused(created.format(more=f", '{dropped}' = 'true'")))
    assert not (tmp_path / "typed").exists()
    run(created.format(more=""))
    config = lakewarden.Table(str(tmp_path / "typed")).config
    assert config.key_generator == "COMPLEX"
    assert config.merge.mode.name == "EVENT_TIME"
    run("SET hoodie.insert.shuffle.parallelism = 2")
    run("INSERT INTO typed VALUES (1, 1, 'Oslo')")
    assert run("SELECT id FROM typed") == [(1,)]
    run("RESET hoodie.insert.shuffle.parallelism")
    run("SET hoodie.base.file.format = ORC")
    assert "hoodie.base.file.format=ORC" in str(refused("INSERT INTO typed VALUES (1, 1, 'Oslo')"))
    run("RESET hoodie.base.file.format")
    run("DROP TABLE typed")


def test_a_pasted_configuration_writes_and_reads(sql_session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    columns = "id INT, ts BIGINT, city STRING"
    for rows in ([(1, 1, "Oslo"), (2, 1, "Rome")], [(1, 2, "Oslo")]):
        frame = sql_session.createDataFrame(rows, columns)
        frame.write.format("lakewarden").options(**PASTED).mode("append").save(path)
    replaced = sql_session.createDataFrame([(3, 1, "Rome")], columns)
    replaced.write.format("lakewarden").options(**PASTED).option(
        "hoodie.datasource.write.operation", "insert_overwrite"
    ).mode("append").save(path)
    read = sql_session.read.format("lakewarden").option("hoodie.metadata.enable", "true")
    found = read.option("hoodie.enable.data.skipping", "true").load(path)
    assert sorted((row.id, row.ts) for row in found.collect()) == [(1, 2), (3, 1)]
    assert lakewarden.Table(path).config.table_type.name == "MERGE_ON_READ"
    for wrong, hint in [
        ({"hoodie.upsert.shufle.parallelism": "2"}, "hoodie.upsert.shuffle.parallelism"),
        ({"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}, "MERGE_ON_READ"),
    ]:
        with pytest.raises(PySparkException, match=hint) as refused:
            replaced.write.format("lakewarden").options(**(PASTED | wrong)).mode("append").save(
                path
            )
        if "shufle" in str(wrong):
            assert "Traceback" not in str(refused.value)


def test_insert_does_with_known_keys_as_the_settings_say(
    run: Run, refused: Refused, make: Make
) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo')")
    two = f"INSERT INTO {name} VALUES (1, 'z', 9, 'Oslo'), (2, 'b', 2, 'Rome')"
    rows = f"SELECT id, name FROM {name} ORDER BY id, name"
    for key, value in [
        ("hoodie.sql.insert.mode", "strict"),
        ("hoodie.datasource.insert.dup.policy", "fail"),
    ]:
        run(f"SET {key} = {value}")
        assert "KEY_EXISTS" in str(refused(two))
        run(f"RESET {key}")
    run("SET hoodie.datasource.write.insert.drop.duplicates = true")
    run(two)
    run("RESET hoodie.datasource.write.insert.drop.duplicates")
    assert run(rows) == [(1, "a"), (2, "b")]
    run("SET hoodie.sql.insert.mode = upsert")
    run(two)
    assert run(rows) == [(1, "z"), (2, "b")]
    run("SET hoodie.sql.insert.mode = non-strict")
    run(f"INSERT INTO {name} VALUES (2, 'c', 3, 'Rome')")
    run("SET hoodie.sql.bulk.insert.enable = true")
    run("SET hoodie.sql.insert.mode = strict")
    assert "bulk insert" in str(refused(two))
    run("RESET hoodie.sql.bulk.insert.enable")
    run("RESET hoodie.sql.insert.mode")
    assert run(rows) == [(1, "z"), (2, "b"), (2, "c")]


def test_rows_of_the_old_policy_are_cast_as_spark_casts_them(run: Run, make: Make) -> None:
    name = make(rows="")
    run("SET spark.sql.storeAssignmentPolicy = legacy")
    run(f"INSERT INTO {name} VALUES ('1', 'a', 2.7, 'Oslo')")
    run(f"INSERT INTO {name} (city, id, qty) VALUES ('Rome', 2, 'no number')")
    run(
        f"INSERT INTO {name} PARTITION (city = 'Bonn') SELECT '3' AS qty, id + 1 AS id, 5 AS name"
        f" FROM {name} WHERE id = 2"
    )
    run("RESET spark.sql.storeAssignmentPolicy")
    assert run(f"SELECT id, name, qty, city FROM {name} ORDER BY id") == [
        (1, "a", 2, "Oslo"),
        (2, None, None, "Rome"),
        (3, "5", 3, "Bonn"),
    ]


def test_insert_overwrite_goes_by_hudis_mode(run: Run, make: Make) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo'), (2, 'b', 2, 'Rome')")
    run("SET hoodie.datasource.overwrite.mode = dynamic")
    run(f"INSERT OVERWRITE {name} VALUES (3, 'c', 3, 'Rome')")
    run("RESET hoodie.datasource.overwrite.mode")
    assert run(f"SELECT id FROM {name} ORDER BY id") == [(1,), (3,)]
    run("SET hoodie.datasource.write.operation = insert_overwrite")
    run(f"INSERT OVERWRITE {name} VALUES (5, 'e', 5, 'Rome')")
    run("SET hoodie.datasource.write.operation = insert_overwrite_table")
    assert run(f"SELECT id FROM {name} ORDER BY id") == [(1,), (5,)]
    run(f"INSERT OVERWRITE {name} PARTITION (city = 'Rome') VALUES (6, 'f', 6)")
    run("RESET hoodie.datasource.write.operation")
    assert run(f"SELECT id FROM {name}") == [(6,)]
    run(f"INSERT OVERWRITE {name} VALUES (4, 'd', 4, 'Rome')")
    assert run(f"SELECT id FROM {name}") == [(4,)]


def test_partition_columns_of_a_new_table_are_the_last_ones(
    run: Run, refused: Refused, tmp_path: Path
) -> None:
    run(
        "CREATE TABLE placed (city STRING, id INT, qty INT) USING hudi PARTITIONED BY (city)"
        f" LOCATION '{tmp_path / 'placed'}' TBLPROPERTIES (primaryKey = 'id')"
    )
    run("INSERT INTO placed VALUES (1, 10, 'Oslo')")
    assert run("SELECT id, qty, city FROM placed") == [(1, 10, "Oslo")]
    run("DROP TABLE placed")
    schema = pa.schema([("city", pa.string()), ("id", pa.int32()), ("qty", pa.int32())])
    other = str(tmp_path / "other")
    lakewarden.Table.create(other, schema, ["id"], ["city"])
    run(f"CREATE TABLE placed USING hudi LOCATION '{other}'")
    error = str(refused("INSERT INTO placed VALUES (1, 10, 'Oslo')"))
    assert "INSERT_BY_POSITION" in error
    assert "(city, id, qty)" in error
    run("INSERT INTO placed (id, qty, city) VALUES (1, 10, 'Oslo')")
    run("INSERT INTO placed PARTITION (city = 'Rome') VALUES (2, 20)")
    run("SET lakewarden.sql.insert.by.position = true")
    run("INSERT INTO placed VALUES ('Bonn', 3, 30)")
    run("RESET lakewarden.sql.insert.by.position")
    assert run("SELECT id, qty, city FROM placed ORDER BY id") == [
        (1, 10, "Oslo"),
        (2, 20, "Rome"),
        (3, 30, "Bonn"),
    ]
    run("DROP TABLE placed")


def test_tables_using_hudi_are_ours_unless_a_setting_says_no(run: Run, tmp_path: Path) -> None:
    run(
        "CREATE TABLE of_hudi (id INT, name STRING) USING hudi"
        f" LOCATION '{tmp_path / 'of_hudi'}' OPTIONS (primaryKey = 'id', type = 'cow')"
    )
    run("INSERT INTO of_hudi VALUES (1, 'a'), (2, 'b')")
    run("UPDATE of_hudi SET name = 'c' WHERE id = 1")
    run("DELETE FROM of_hudi WHERE id = 2")
    assert run("SELECT id, name FROM of_hudi") == [(1, "c")]
    run("SET lakewarden.sql.hudi.tables = false")
    try:
        for statement in ("CREATE TABLE no (id INT) USING hudi", "SELECT id FROM of_hudi"):
            # Spark lets its own error through as Java has it.
            with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
                run(statement)
    finally:
        run("RESET lakewarden.sql.hudi.tables")
    run("DROP TABLE of_hudi")


@pytest.mark.parametrize("type_", sample(("cow", "mor"), 2))
def test_alter_table_changes_columns_and_properties(
    run: Run, refused: Refused, make: Make, tmp_path: Path, type_: str
) -> None:
    name = make(type_)
    run(f"UPDATE {name} SET name = 'aa' WHERE id = 1")
    for statement in ALTERED.strip().splitlines():
        run(statement.format(t=name))
    described = {row.col_name: row for row in run(f"DESCRIBE {name}")}
    assert list(described)[:6] == ["id", "early", "title", "extra", "more", "city"]
    assert described["more"].comment == "other"
    table = lakewarden.Table(str(tmp_path / name))
    kept = table.properties["lakewarden.setting.hoodie.parquet.small.file.limit"]
    assert kept == "0"
    run(f"INSERT INTO {name} (id, title, more, city) VALUES (4, 'd', 5000000000, 'Oslo')")
    run(f"UPDATE {name} SET extra = 'e' WHERE id = 1")
    rows = f"SELECT id, early, title, extra, more, city FROM {name} ORDER BY id"
    after = [
        (1, None, "aa", "e", None, "Oslo"),
        (2, None, "b", None, None, "Rome"),
        (3, None, "c", None, None, "Oslo"),
        (4, None, "d", None, 5000000000, "Oslo"),
    ]
    assert run(rows) == after
    assert run(f"SELECT id FROM {name} WHERE title = 'aa'") == [(1,)]
    run(f"ALTER TABLE {name} ADD COLUMN qty STRING")
    assert run(f"SELECT DISTINCT qty FROM {name}") == [(None,)]
    if type_ == "mor":
        table.compaction.schedule_and_run()
    assert run(rows) == after
    for statement in NOT_ALTERED.strip().splitlines():
        error = str(refused(statement.format(t=name)))
        assert "LAKEWARDEN" in error, statement
    assert run(rows) == after


@pytest.mark.parametrize("type_", sample(("cow", "mor"), 2))
def test_a_table_without_a_primary_key_takes_all_statements(
    run: Run, sql_session: SparkSession, tmp_path: Path, type_: str
) -> None:
    path = str(tmp_path / "keyless")
    run(
        "CREATE TABLE keyless (id INT, name STRING, city STRING) USING hudi"
        f" PARTITIONED BY (city) LOCATION '{path}' TBLPROPERTIES (type = '{type_}')"
    )
    rows = "SELECT id, name, city FROM keyless ORDER BY id, name"
    for _ in range(2):
        run("INSERT INTO keyless VALUES (1, 'a', 'Oslo'), (2, 'b', 'Rome')")
    run("UPDATE keyless SET name = 'c', city = 'Bonn' WHERE id = 2")
    run("DELETE FROM keyless WHERE name = 'a'")
    assert run(rows) == [(2, "c", "Bonn")] * 2
    run(
        "MERGE INTO keyless t USING (SELECT 2 AS id, 'm' AS name UNION ALL SELECT 3, 'n') s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        " WHEN NOT MATCHED THEN INSERT (id, name, city) VALUES (s.id, s.name, 'Oslo')"
    )
    run(
        "MERGE INTO keyless t USING (SELECT 3 AS id UNION ALL SELECT 4) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, name, city) VALUES (s.id, 'o', 'Oslo')"
    )
    after = [(2, "m", "Bonn"), (2, "m", "Bonn"), (3, "n", "Oslo"), (4, "o", "Oslo")]
    assert run(rows) == after
    frame = sql_session.createDataFrame([(5, "p", "Rome")], "id INT, name STRING, city STRING")
    options = {"hoodie.datasource.write.operation": "insert"}
    frame.write.format("lakewarden").options(**options).mode("append").save(path)
    assert run(rows) == [*after, (5, "p", "Rome")]
    keys = lakewarden.Table(path).read_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    assert len(set(keys)) == 5
    run("DROP TABLE keyless")


def test_functions_by_hudis_names_are_there(run: Run, refused: Refused, make: Make) -> None:
    name = make("mor", rows="(1, 'a', 1, 'Oslo')")
    run(f"UPDATE {name} SET name = 'b' WHERE id = 1")
    query = "SELECT name FROM hudi_query('{t}', '{mode}')"
    assert run(query.format(t=name, mode="snapshot")) == [("b",)]
    assert run(query.format(t=name, mode="read_optimized")) == [("a",)]
    changes = f"SELECT name FROM hudi_table_changes('{name}', 'latest_state', 'earliest')"
    assert run(changes) == [("b",)]
    first = run(f"SELECT min(instant_time) FROM lakewarden_timeline('{name}')")[0][0]
    until = f"SELECT name FROM hudi_table_changes('{name}', 'latest_state', '0', '{first}')"
    assert run(until) in ([("a",)], [])
    columns = "op, ts_ms, get_json_object(before, '$.name'), get_json_object(after, '$.name')"
    captured = f"SELECT {columns} FROM hudi_table_changes('{name}', 'cdc', 'earliest')"
    expected = [("i", None, "a"), ("u", "a", "b")]
    assert [(op, old, new) for op, _, old, new in run(f"{captured} ORDER BY ts_ms")] == expected
    ours = f"FROM table_changes('{name}', '0', mode => 'cdc') WHERE op = 'u'"
    assert run(f"SELECT {columns} {ours}") == [run(f"{captured} ORDER BY ts_ms")[1]]
    other = refused(f"SELECT * FROM table_changes('{name}', '0', '1', 'rows')")
    assert "no mode rows" in str(other)
    assert "missing" in str(refused(f"SELECT * FROM hudi_query('{name}')"))
