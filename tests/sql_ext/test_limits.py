"""However a path comes in, what a server's owner does not allow is neither read nor changed."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.sql_ext.session.permitted import ALLOWED_ROOTS, READ_ONLY
from tests.procedures.calls import contents_of
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.made_tables import made

pytestmark = pytest.mark.xdist_group("spark")

LOCK = "hoodie.write.lock.filesystem.path"
KEYED = "TBLPROPERTIES (primaryKey = 'id')"
NEW = f"(id STRING) USING lakewarden LOCATION '{{0}}_new' {KEYED}"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, and a link that leads out of it."""
    folder = tmp_path_factory.mktemp("allowed")
    made(folder / "inside")
    return folder


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Path:
    """A table that may not use."""
    path = tmp_path_factory.mktemp("elsewhere") / "orders"
    made(path)
    (lake / "link").symlink_to(path)
    return path


@pytest.fixture(scope="module")
def entries(run: Run, lake: Path, elsewhere: Path) -> Iterator[None]:
    """What the catalog had before limits were set: tables and databases in and out of the lake."""
    run("CREATE DATABASE limits")
    run(f"CREATE TABLE limits.inside USING lakewarden LOCATION '{lake}/inside'")
    run(f"CREATE TABLE limits.elsewhere USING lakewarden LOCATION '{elsewhere}'")
    for name, place in (("far", elsewhere.parent / "far"), ("near", lake / "near")):
        run(f"CREATE DATABASE {name} LOCATION '{place}'")
        run(f"CREATE TABLE {name}.managed (id STRING) USING lakewarden {KEYED}")
    yield
    for name in ("far", "near", "limits"):
        run(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def limit(
    sql_session: SparkSession, entries: None
) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """`limit(settings)`: what holds until the test ends."""
    conf = sql_session.sparkContext._jsc.sc().conf()
    # Spark 4.1 looks for data sources in the session that the thread worked with last.
    sessions = sql_session._jvm.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(sql_session._jsparkSession)
    yield lambda settings: lakewarden.enable(sql_session, settings) and None
    for key in (ALLOWED_ROOTS, READ_ONLY):
        conf.remove(key)
    lakewarden.enable(sql_session)


@pytest.mark.parametrize("spelling", ["{0}", "file:{0}", "{1}/link", "{1}/../{2}"])
def test_no_path_leads_out_of_the_allowed_roots(
    limit: Callable[[Mapping[str, str]], None],
    sql_session: SparkSession,
    refused: Refused,
    lake: Path,
    elsewhere: Path,
    spelling: str,
) -> None:
    limit({ALLOWED_ROOTS: str(lake)})
    before = contents_of(elsewhere.parent)
    path = spelling.format(elsewhere, lake, elsewhere.relative_to(lake.parent))
    for statement in (
        f"SELECT * FROM table_changes('{path}', '0')",
        f"SELECT * FROM lakewarden_plans('{path}')",
        f"CREATE TEMPORARY VIEW seen USING lakewarden OPTIONS (PATH '{path}')",
        f"CREATE TABLE limits.t USING lakewarden LOCATION '{path}'",
        f"CALL show_timeline(path => '{path}')",
        f"CALL commits_compare(table => 'limits.inside', path => '{path}')",
        f"CALL export_instants(table => 'limits.inside', local_folder => '{path}')",
        "CALL repair_overwrite_hoodie_props(table => 'limits.inside',"
        f" new_props_file_path => '{path}/x')",
    ):
        assert refused(statement).getCondition() == "LAKEWARDEN_PATH_NOT_ALLOWED", statement
    rows = sql_session.sql("SELECT '2' AS id")
    for attempt in (
        lambda: sql_session.read.format("lakewarden").load(path),
        lambda: sql_session.read.format("LakeWarden").option("Path", path).load(),
        lambda: rows.write.format("lakewarden").mode("append").save(path),
        lambda: rows.write.format("lakewarden").mode("overwrite").save(path),
    ):
        with pytest.raises(PySparkException, match="may not use"):
            attempt()
    assert contents_of(elsewhere.parent) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM limits.elsewhere",
        "INSERT INTO limits.elsewhere VALUES ('2')",
        "DELETE FROM limits.elsewhere",
        "DROP TABLE limits.elsewhere",
        "DROP TABLE far.managed",
        "DROP DATABASE far CASCADE",
        "ALTER TABLE far.managed RENAME TO far.other",
        f"CREATE TABLE far.t (id STRING) USING lakewarden {KEYED}",
        f"CREATE TABLE far.t USING lakewarden {KEYED} AS SELECT '1' AS id",
        "CREATE TABLE limits.t " + NEW.replace("{0}", "{elsewhere}"),
        f"INSERT INTO limits.inside WITH ('{LOCK}' = '{{elsewhere}}') VALUES ('2')",
        f"CREATE TABLE limits.t (id STRING) USING lakewarden LOCATION '{{lake}}/t'"
        f" TBLPROPERTIES (primaryKey = 'id', '{LOCK}' = '{{elsewhere}}')",
    ],
)
def test_no_statement_leads_out_either(
    limit: Callable[[Mapping[str, str]], None],
    refused: Refused,
    lake: Path,
    elsewhere: Path,
    statement: str,
) -> None:
    limit({ALLOWED_ROOTS: str(lake)})
    before = contents_of(elsewhere.parent)
    error = refused(statement.replace("{elsewhere}", str(elsewhere)).replace("{lake}", str(lake)))
    assert error.getCondition() == "LAKEWARDEN_PATH_NOT_ALLOWED"
    assert contents_of(elsewhere.parent) == before


def test_no_setting_of_a_session_leads_a_write_out(
    limit: Callable[[Mapping[str, str]], None],
    run: Run,
    refused: Refused,
    elsewhere: Path,
    lake: Path,
) -> None:
    limit({ALLOWED_ROOTS: str(lake)})
    run(f"SET {LOCK}={elsewhere}")
    try:
        error = refused("INSERT INTO limits.inside VALUES ('2')")
    finally:
        run(f"RESET {LOCK}")
    assert error.getCondition() == "LAKEWARDEN_PATH_NOT_ALLOWED"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO limits.inside VALUES ('2')",
        "DELETE FROM limits.inside",
        "DROP TABLE limits.inside",
        "ALTER TABLE near.managed RENAME TO near.other",
        "DROP DATABASE near CASCADE",
        "CREATE TABLE limits.t " + NEW.replace("{0}", "{lake}/t"),
        f"CREATE TABLE near.t (id STRING) USING lakewarden {KEYED}",
        "CALL export_instants(table => 'limits.inside', local_folder => '{lake}/export')",
        "CALL repair_clustering_plan(table => 'limits.inside', instant => '1', dry_run => false)",
        "CREATE INDEX i ON limits.inside USING record_index (id)",
    ],
)
def test_nothing_is_changed_where_only_reading_is_allowed(
    limit: Callable[[Mapping[str, str]], None], refused: Refused, lake: Path, statement: str
) -> None:
    limit({READ_ONLY: "true"})
    before = contents_of(lake)
    error = refused(statement.replace("{lake}", str(lake)))
    assert error.getCondition() == "LAKEWARDEN_READ_ONLY"
    assert contents_of(lake) == before


def test_the_data_source_only_reads_then(
    limit: Callable[[Mapping[str, str]], None], sql_session: SparkSession, lake: Path
) -> None:
    limit({READ_ONLY: "true"})
    source = sql_session.read.format("lakewarden")
    assert source.load(f"{lake}/inside").count() == 1
    rows = sql_session.sql("SELECT '2' AS id")
    for mode in ("append", "overwrite"):
        with pytest.raises(PySparkException, match="not allowed here"):
            rows.write.format("lakewarden").mode(mode).save(f"{lake}/inside")
