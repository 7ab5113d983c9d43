"""What a server's owner allows, no client's statement widens."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.session.permitted import fix_permissions
from tests.sql_ext.conftest import Refused, Run

pytestmark = pytest.mark.xdist_group("spark")

KEYS = ("lakewarden.allowed.roots", "lakewarden.read.only")


@pytest.fixture
def limited(sql_session: SparkSession, orders: Path) -> Iterator[SparkSession]:
    """The session where only the lake may be touched, and only read."""
    settings = dict(zip(KEYS, (str(orders.parent), "true"), strict=True))
    yield lakewarden.enable(sql_session, settings)
    for key in KEYS:
        sql_session.sparkContext._jsc.sc().conf().remove(key)
    lakewarden.enable(sql_session)


def test_paths_outside_are_refused(
    limited: SparkSession, run: Run, refused: Refused, orders: Path, tmp_path: Path
) -> None:
    run(f"CALL show_plans(path => '{orders}')")
    (tmp_path / "link").symlink_to("/")
    for path in (tmp_path, f"{orders}/../../..", f"file://{tmp_path}", tmp_path / "link", "s3://b"):
        error = refused(f"CALL show_plans(path => '{path}')")
        assert (error.getCondition(), error.getSqlState()) == (
            "LAKEWARDEN_PATH_NOT_ALLOWED",
            "42501",
        )


def test_settings_lead_nowhere_else(
    limited: SparkSession, run: Run, refused: Refused, orders: Path, tmp_path: Path
) -> None:
    key = "hoodie.write.lock.filesystem.path"
    call = f"CALL run_compaction(op => 'schedule', path => '{orders}', dry_run => true"
    for options in (f"'{key}={tmp_path}'", f"map('{key}', '{tmp_path}')"):
        error = refused(f"{call}, options => {options})")
        assert error.getCondition() == "LAKEWARDEN_PATH_NOT_ALLOWED"
    run(f"SET {key}={tmp_path}")
    assert refused(f"{call})").getCondition() == "LAKEWARDEN_PATH_NOT_ALLOWED"
    run(f"RESET {key}")


def test_table_functions_are_kept_inside(
    limited: SparkSession, run: Run, orders: Path, tmp_path: Path
) -> None:
    run(f"SELECT * FROM lakewarden_plans('{orders}')")
    with pytest.raises(PySparkException, match="may not use"):
        run(f"SELECT * FROM lakewarden_plans('{tmp_path}')")


def test_nothing_is_changed(limited: SparkSession, refused: Refused, orders: Path) -> None:
    for statement in (
        f"CALL run_compaction(op => 'schedule', path => '{orders}')",
        f"SCHEDULE COMPACTION ON '{orders}'",
        f"CALL cancel_plan(path => '{orders}', instant => 1)",
    ):
        error = refused(statement)
        assert (error.getCondition(), error.getSqlState()) == ("LAKEWARDEN_READ_ONLY", "42501")


def test_no_session_changes_it(
    limited: SparkSession, run: Run, refused: Refused, tmp_path: Path
) -> None:
    for prefix in ("", "spark."):
        run(f"SET {prefix}lakewarden.allowed.roots=/")
        run(f"SET {prefix}lakewarden.read.only=false")
    outside = f"CALL cancel_plan(path => '{tmp_path}', instant => 1)"
    assert refused(outside).getSqlState() == "42501"
    for prefix in ("", "spark."):
        run(f"RESET {prefix}lakewarden.allowed.roots")
        run(f"RESET {prefix}lakewarden.read.only")
    assert refused(outside).getSqlState() == "42501"


def test_permissions_are_given_once(limited: SparkSession) -> None:
    with pytest.raises(InvalidRequest, match="its permissions once"):
        lakewarden.enable(limited, {"lakewarden.read.only": "false"})


class OlderContext:
    """A context that says to be Spark 3.5, with a configuration of its own."""

    version = "3.5.9"

    def __init__(self, spark: SparkSession, key: str | None) -> None:
        self._jsc, jvm = self, spark.sparkContext._jvm
        assert jvm is not None
        self.conf = jvm.org.apache.spark.SparkConf(False)
        if key is not None:
            self.conf.set(key, "true")

    def sc(self) -> SimpleNamespace:
        return SimpleNamespace(conf=lambda: self.conf)


@pytest.mark.parametrize("key", [KEYS[1], f"spark.{KEYS[1]}", f"spark.{KEYS[0]}"])
def test_an_older_spark_takes_no_permissions_wherever_they_are_set(
    sql_session: SparkSession, key: str
) -> None:
    with pytest.raises(InvalidRequest, match=r"This is Spark 3\.5\.9"):
        fix_permissions(cast(SparkContext, OlderContext(sql_session, key)), {})
    with pytest.raises(InvalidRequest, match=r"This is Spark 3\.5\.9"):
        fix_permissions(cast(SparkContext, OlderContext(sql_session, None)), {KEYS[0]: "/data"})
    fix_permissions(cast(SparkContext, OlderContext(sql_session, None)), {})
