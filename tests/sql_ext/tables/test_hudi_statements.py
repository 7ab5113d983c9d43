"""What Hudi's users type: its settings, names and statements, one form after the other."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewarden
from tests.engine.services.test_hudi_settings import PASTED
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.tables.conftest import Make

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
    unsupported = refused(created.format(more=", 'hoodie.populate.meta.fields' = 'false'"))
    assert "hoodie.populate.meta.fields=false" in str(unsupported)
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
    run("RESET hoodie.sql.insert.mode")
    assert run(rows) == [(1, "z"), (2, "b"), (2, "c")]


def test_insert_overwrite_goes_by_hudis_mode(run: Run, make: Make) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo'), (2, 'b', 2, 'Rome')")
    run("SET hoodie.datasource.overwrite.mode = dynamic")
    run(f"INSERT OVERWRITE {name} VALUES (3, 'c', 3, 'Rome')")
    run("RESET hoodie.datasource.overwrite.mode")
    assert run(f"SELECT id FROM {name} ORDER BY id") == [(1,), (3,)]
    run(f"INSERT OVERWRITE {name} VALUES (4, 'd', 4, 'Rome')")
    assert run(f"SELECT id FROM {name}") == [(4,)]
