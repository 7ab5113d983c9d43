"""No statement of Spark's own gets around what a server's owner allows."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import lakewarden
from lakewarden.sql_ext.session.permitted import ALLOWED_ROOTS, READ_ONLY
from tests.procedures.calls import contents_of
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.made_tables import made

pytestmark = pytest.mark.xdist_group("spark")

Limit = Callable[[Mapping[str, str]], None]

# Statements that would change files; {t} is the folder of a table, {r} an allowed one.
CHANGES = """
CREATE DATABASE e LOCATION '{t}'
CREATE DATABASE e LOCATION '{t}/p'
CREATE DATABASE e LOCATION '../orders'
CREATE TABLE apart.n (id STRING) USING parquet LOCATION '../orders'
CREATE DATABASE e LOCATION '{t}/.hoodie/e'
ALTER DATABASE apart SET LOCATION '{t}'
DROP DATABASE above CASCADE
DROP DATABASE above
INSERT OVERWRITE DIRECTORY '{t}' USING parquet SELECT 1
INSERT OVERWRITE LOCAL DIRECTORY '{t}' USING csv SELECT 1
INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '{t}/p') SELECT 1
INSERT OVERWRITE DIRECTORY '{r}' USING parquet SELECT 1
INSERT OVERWRITE DIRECTORY 'file:{r}/./orders' USING parquet SELECT 1
INSERT OVERWRITE DIRECTORY '{t}' SELECT 1
INSERT OVERWRITE apart.on_table VALUES ('9')
INSERT INTO apart.on_table VALUES ('9')
INSERT OVERWRITE apart.in_parts PARTITION (id = '1') VALUES ('9')
TRUNCATE TABLE apart.in_parts
ALTER TABLE apart.in_parts DROP PARTITION (id = '1')
ALTER TABLE apart.in_parts PARTITION (id = '1') RENAME TO PARTITION (id = '3')
ALTER TABLE apart.in_parts ADD PARTITION (id = '2') LOCATION '{t}'
ALTER TABLE apart.in_parts PARTITION (id = '1') SET LOCATION '{t}'
ALTER TABLE apart.plain SET LOCATION '{t}'
ALTER TABLE apart.plain SET SERDEPROPERTIES ('path' = '{t}')
DROP TABLE apart.managed_above
CREATE TABLE apart.n (id STRING) USING parquet LOCATION '{t}'
CREATE TABLE apart.n USING parquet LOCATION '{t}' AS SELECT 1 AS id
CREATE TABLE apart.n USING csv OPTIONS (path '{t}') AS SELECT 1 AS id
CREATE TABLE apart.n (id STRING) USING csv OPTIONS ('fs.file.impl' = 'x')
CREATE OR REPLACE TABLE apart.plain (id STRING) USING parquet
CREATE TABLE apart.n LIKE apart.plain LOCATION '{t}'
CREATE TABLE apart.n (id STRING) USING jdbc OPTIONS (url 'jdbc:derby:{r}/d;create=true')
CREATE TEMPORARY VIEW n USING jdbc OPTIONS (url 'jdbc:derby:{r}/d;create=true')
LOAD DATA INPATH '{t}' OVERWRITE INTO TABLE apart.plain
LOAD DATA LOCAL INPATH '{t}' INTO TABLE apart.plain
FROM VALUES (1) AS v(a) INSERT INTO apart.plain SELECT a INSERT INTO apart.on_table SELECT a
WITH q AS (SELECT 1 AS a) INSERT OVERWRITE apart.on_table SELECT a FROM q
EXECUTE IMMEDIATE "INSERT OVERWRITE DIRECTORY '{t}' USING parquet SELECT 1"
BEGIN INSERT OVERWRITE DIRECTORY '{t}' USING parquet SELECT 1; END
"""
REFUSALS = {
    "LAKEWARDEN_FOLDER_OF_TABLE",
    "LAKEWARDEN_STATEMENT_NOT_ALLOWED",
    # Spark's own, of what its catalog in memory can't do.
    "NOT_SUPPORTED_COMMAND_WITHOUT_HIVE_SUPPORT",
    "UNSUPPORTED_FEATURE.TABLE_OPERATION",
}
# Code of a client's own, and what could become anything, whatever is allowed.
CODE = """
ADD JAR '{t}/x.jar'
ADD FILE '{t}'
ADD ARCHIVE '{t}/x.zip'
CREATE FUNCTION apart.f AS 'x.Y' USING JAR '{t}/x.jar'
CREATE TEMPORARY FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'
SELECT reflect('java.lang.System', 'setProperty', 'a', 'b')
SELECT java_method('java.util.UUID', 'randomUUID')
SELECT 1 WHERE 'a' IN (SELECT try_reflect('java.lang.System', 'getProperty', 'user.home'))
SELECT TRANSFORM (id) USING 'touch {t}/x' AS (x) FROM apart.plain
SET spark.sql.catalog.c = org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog
SET fs.file.impl = org.apache.hadoop.fs.viewfs.ViewFileSystem
SET spark.sql.warehouse.dir = {r}
"""
# What reads files elsewhere; {o} is a folder outside.
READS = """
SELECT * FROM parquet.`{o}`
SELECT * FROM csv.`file:{o}`
SELECT * FROM text.`{r}/../{name}`
SELECT * FROM json.`{r}/{{orders,../{name}}}`
SELECT 1 WHERE 1 IN (SELECT 1 FROM text.`{o}`)
CREATE TEMPORARY VIEW n AS SELECT * FROM text.`{o}`
CREATE TEMPORARY VIEW n USING csv OPTIONS (path '{o}')
CACHE TABLE n AS SELECT * FROM text.`{o}`
CREATE TABLE apart.n USING text LOCATION '{o}'
INSERT INTO limits_inside SELECT * FROM text.`{o}`
SELECT * FROM apart.outside
ANALYZE TABLE apart.outside COMPUTE STATISTICS
EXECUTE IMMEDIATE "SELECT * FROM text.`{o}`"
"""


def statements(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The allowed folder, with a table in it."""
    folder = tmp_path_factory.mktemp("spark_lake")
    made(folder / "orders")
    return folder


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file that must not be read."""
    folder = tmp_path_factory.mktemp("spark_outside")
    (folder / "secret.txt").write_text("secret\n")
    return folder


@pytest.fixture(scope="module")
def entries(run: Run, lake: Path, outside: Path) -> Iterator[None]:
    """What the catalog had before limits were set, also of the worst kind."""
    run(f"CREATE DATABASE apart LOCATION '{lake}/apart'")
    run(f"CREATE DATABASE above LOCATION '{lake}'")
    run("CREATE TABLE apart.plain (id STRING) USING parquet")
    run("INSERT INTO apart.plain VALUES ('1')")
    run(f"CREATE TABLE apart.on_table (id STRING) USING parquet LOCATION '{lake}/orders'")
    run("CREATE TABLE apart.in_parts (a STRING, id STRING) USING parquet PARTITIONED BY (id)")
    run(f"ALTER TABLE apart.in_parts ADD PARTITION (id = '1') LOCATION '{lake}/orders'")
    run(f"CREATE TABLE apart.outside (value STRING) USING text LOCATION '{outside}'")
    run("CREATE TABLE apart.managed_above (id STRING) USING parquet")
    made(lake / "apart" / "managed_above" / "inner")
    run(f"CREATE TABLE limits_inside USING lakewarden LOCATION '{lake}/orders'")
    yield
    run("DROP TABLE limits_inside")
    # Their folders go with the test's own; Spark would remove tables of ours as well.
    for name in ("plain", "on_table", "outside", "in_parts", "managed_above"):
        run(f"DROP TABLE apart.{name}")
    run("DROP DATABASE apart CASCADE")
    run("DROP DATABASE above CASCADE")


@pytest.fixture
def limit(sql_session: SparkSession, entries: None) -> Iterator[Limit]:
    """`limit(settings)`: what holds until the test ends."""
    conf = sql_session.sparkContext._jsc.sc().conf()
    yield lambda settings: lakewarden.enable(sql_session, settings) and None
    for key in (ALLOWED_ROOTS, READ_ONLY):
        conf.remove(key)
    lakewarden.enable(sql_session)


@pytest.fixture(params=[{}, {READ_ONLY: "true"}], ids=["roots", "read-only"])
def limited(request: pytest.FixtureRequest, limit: Limit, lake: Path) -> Mapping[str, str]:
    """Limits to the lake, with and without writes."""
    settings = {ALLOWED_ROOTS: str(lake), **request.param}
    limit(settings)
    return settings


def test_files_of_tables_stay_as_they_are(
    limited: Mapping[str, str], refused: Refused, lake: Path
) -> None:
    before = contents_of(lake)
    for statement in statements(CHANGES):
        error = refused(statement.format(t=lake / "orders", r=lake))
        wanted = {"LAKEWARDEN_READ_ONLY"} if READ_ONLY in limited else set()
        assert error.getCondition() in REFUSALS | wanted, f"{statement}: {error}"
        assert contents_of(lake) == before, statement


def test_code_of_clients_is_refused(
    limited: Mapping[str, str], sql_session: SparkSession, run: Run, lake: Path
) -> None:
    before = contents_of(lake)
    for statement in statements(CODE):
        with pytest.raises(PySparkException, match=r"is not allowed here|CANNOT_MODIFY"):
            run(statement.format(t=lake / "orders", r=lake))
    for attempt in (
        lambda: sql_session.range(1).select(udf(lambda one: one)("id")),
        lambda: sql_session.range(1).mapInArrow(lambda rows: rows, "id LONG").collect(),
        lambda: sql_session.readStream.format("rate").load(),
        lambda: sql_session.range(1).write.format("jdbc").save(),
        lambda: with_setting(sql_session, "spark.sql.catalog.c", "any.Catalog"),
        lambda: with_setting(sql_session, "fs.file.impl", "any.FileSystem"),
    ):
        with pytest.raises(PySparkException, match="is not allowed here"):
            attempt()
    assert contents_of(lake) == before


def with_setting(spark: SparkSession, key: str, value: str) -> None:
    """A query of a session that has set something otherwise than by SET."""
    spark.conf.set(key, value)
    try:
        spark.sql("SELECT 1").collect()
    finally:
        spark.conf.unset(key)


def test_files_outside_are_not_read(
    limited: Mapping[str, str], run: Run, refused: Refused, lake: Path, outside: Path
) -> None:
    for statement in statements(READS):
        filled = statement.format(o=outside, r=lake, name=outside.name)
        error = refused(filled)
        assert re.search("may not use|not allowed here", str(error)), filled
    explained = run(f"EXPLAIN SELECT * FROM text.`{outside}`")
    assert "may not use" in "".join(row.plan for row in explained)


def test_nothing_on_storage_changes_where_only_reading_is_allowed(
    limit: Limit, sql_session: SparkSession, run: Run, refused: Refused, lake: Path
) -> None:
    limit({READ_ONLY: "true"})
    before = contents_of(lake)
    for statement in (
        "INSERT INTO apart.plain VALUES ('2')",
        "CREATE TABLE apart.n (id STRING) USING parquet",
        "CREATE TABLE apart.n USING parquet AS SELECT 1 AS id",
        "CREATE VIEW apart.n AS SELECT 1 AS id",
        "CREATE DATABASE n",
        "DROP TABLE apart.plain",
        "DROP DATABASE apart",
        "ALTER TABLE apart.plain RENAME TO apart.other",
        "ALTER TABLE apart.plain SET TBLPROPERTIES ('a' = 'b')",
        "COMMENT ON TABLE apart.plain IS 'x'",
        "TRUNCATE TABLE apart.plain",
        "ANALYZE TABLE apart.plain COMPUTE STATISTICS",
        f"INSERT OVERWRITE DIRECTORY '{lake}/new' USING parquet SELECT 1",
    ):
        assert refused(statement).getCondition() == "LAKEWARDEN_READ_ONLY", statement
    for mode in ("append", "overwrite", "ignore", "error"):
        with pytest.raises(PySparkException, match="not allowed here"):
            sql_session.range(1).write.mode(mode).parquet(f"{lake}/new")
    assert contents_of(lake) == before
    assert not (lake / "new").exists()


def test_queries_and_files_beside_tables_are_left_alone(
    limit: Limit, sql_session: SparkSession, run: Run, lake: Path
) -> None:
    """What is allowed with roots, from a database to its end."""
    limit({ALLOWED_ROOTS: str(lake)})
    run(f"CREATE DATABASE free LOCATION '{lake}/free'")
    run("CREATE TABLE free.t USING parquet AS SELECT '1' AS id, 'x' AS p")
    run("INSERT INTO free.t VALUES ('2', 'y')")
    run("CREATE TABLE free.ours (id STRING) USING lakewarden TBLPROPERTIES (primaryKey = 'id')")
    run("INSERT INTO free.ours SELECT id FROM free.t")
    run("ALTER TABLE free.ours RENAME TO free.renamed")
    run("UPDATE free.renamed SET id = id WHERE id = '1'")
    run("MERGE INTO free.renamed o USING free.t n ON o.id = n.id WHEN NOT MATCHED THEN INSERT *")
    run("INSERT INTO free.renamed VALUES ('3')")
    run("DELETE FROM free.renamed WHERE id = '3'")
    assert len(run("SELECT * FROM table_changes('free.renamed', '0')")) >= 2
    more = sql_session.sql("SELECT '2' AS id").write
    more.format("lakewarden").mode("append").save(f"{lake}/free/renamed")
    run("CREATE VIEW free.v AS SELECT * FROM free.t JOIN free.renamed USING (id)")
    assert len(run("SELECT * FROM free.v")) == 2
    assert len(run(f"SELECT * FROM parquet.`{lake}/free/t`")) == 2
    run("CREATE TEMPORARY VIEW seen AS SELECT id, count(*) FROM free.v GROUP BY id")
    run("CACHE TABLE seen")
    run("DROP VIEW seen")
    sql_session.range(3).write.parquet(f"{lake}/free/files")
    assert sql_session.read.parquet(f"{lake}/free/files").count() == 3
    run("ALTER TABLE free.t RENAME TO free.u")
    run("TRUNCATE TABLE free.u")
    run("DROP TABLE free.u")
    run("DROP DATABASE free CASCADE")
    assert not (lake / "free").exists()
    assert len(run("SELECT * FROM limits_inside")) == 1


def test_reading_is_allowed_where_nothing_else_is(
    limit: Limit, sql_session: SparkSession, run: Run, lake: Path
) -> None:
    limit({READ_ONLY: "true", ALLOWED_ROOTS: str(lake)})
    assert len(run("SELECT * FROM apart.plain")) == 1
    assert len(run("SELECT * FROM limits_inside")) == 1
    run("SET spark.sql.shuffle.partitions = 2")
    run("RESET spark.sql.shuffle.partitions")
    for statement in (
        "SHOW DATABASES",
        "SHOW TABLES IN apart",
        "DESCRIBE TABLE EXTENDED apart.plain",
        "SHOW CREATE TABLE apart.plain",
        "EXPLAIN SELECT * FROM apart.plain",
        "DECLARE VARIABLE one INT DEFAULT 1",
        "SET VAR one = 2",
        "DROP TEMPORARY VARIABLE one",
        "CREATE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN 2 * x",
        "SELECT twice(2)",
        "DROP TEMPORARY FUNCTION twice",
        "BEGIN DECLARE a INT DEFAULT 1; SELECT a; END",
        "CALL show_timeline(table => 'limits_inside')",
        f"SELECT * FROM lakewarden_plans('{lake}/orders')",
        "USE apart",
        "USE default",
    ):
        run(statement)
    assert sql_session.createDataFrame([(1,)], "a INT").count() == 1
