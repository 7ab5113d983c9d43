"""Fixtures for all tests: golden tables, unpacked once per session and shared by all workers."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from lakewarden.java_home import java_home
from tests.golden_tables import GOLDEN_FOLDER, GoldenDocument, GoldenTable, archive_of, unpack
from tests.sampling import DAY, is_due
from tests.small_session import SETTINGS
from tests.sql_server import Ports, running_server

# A busy machine makes any example slow; slowness is measured in `bench`, not asserted in tests.
settings.register_profile("lakewarden", deadline=None, print_blob=True)
settings.load_profile("lakewarden")

# What all workers of a run could have of their own, and the group of tests that has it instead.
SHARED = {"spark": "spark", "server": "served", "s3_server": "s3"}


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are cores: a worker often waits for a JVM, a server or a process."""
    return (yield) + 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how the samples of this run are drawn once more."""
    terminalreporter.write_line(f"Samples are those of LAKEWARDEN_DAY={DAY}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests without any case: tables that only a neighbouring folder has.

    Pytest would report each as passed over, which hides the ones that somebody disabled.
    Those whose turn is on another day are reported as not chosen.

    Tests that share what takes long to make are one group, which one worker runs: else each worker
    would make it once more.
    """
    items[:] = [item for item in items if not _has_no_case(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_due(item)])
    items[:] = [item for item in items if _is_due(item)]
    for item in items:
        group = _group_of(item)
        if group and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))


def _has_no_case(item: pytest.Item) -> bool:
    reasons = [str(mark.kwargs.get("reason")) for mark in item.iter_markers()]
    return any(reason.startswith("got empty parameter set") for reason in reasons)


def _is_due(item: pytest.Item) -> bool:
    return all(is_due(*mark.args) for mark in item.iter_markers("by_turns"))


def _group_of(item: pytest.Item) -> str | None:
    """The group of what a test shares with others: by name, or a fixture of its module."""
    assert isinstance(item, pytest.Function)
    for fixture, group in SHARED.items():
        if fixture in item.fixturenames:
            return group
    made = item._fixtureinfo.name2fixturedefs.values()
    is_of_module = any(one[-1].scope == "module" for one in made)
    return f"{item.path.parent.name}/{item.path.stem}" if is_of_module else None


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on a disk, from which programs may be run; `tmp_path` may be in memory."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="session")
def golden_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Where a run of the tests unpacks golden tables; all of its processes share it."""
    base = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    folder = (base.parent if is_worker else base) / "golden"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def golden(golden_folder: Path) -> GoldenTable:
    """`golden(name)`: the folder of an unpacked golden table. Read only: all tests share it."""

    def unpacked(name: str) -> Path:
        target = golden_folder / name
        if not target.is_dir():
            target.parent.mkdir(exist_ok=True)
            _unpack_atomically(archive_of(name), target)
        (table,) = target.iterdir()
        return table

    return unpacked


@pytest.fixture
def golden_copy(tmp_path: Path) -> GoldenTable:
    """`golden_copy(name)`: a private copy of a golden table, free to change."""

    def copied(name: str) -> Path:
        return unpack(archive_of(name), Path(tempfile.mkdtemp(prefix="golden-", dir=tmp_path)))

    return copied


@pytest.fixture(scope="session")
def golden_document() -> GoldenDocument:
    """`golden_document(name)`: what Java answers about a golden table, as parsed JSON."""

    def document(name: str) -> dict[str, Any]:
        content = (GOLDEN_FOLDER / f"{name}.json").read_text(encoding="utf-8")
        parsed: dict[str, Any] = json.loads(content)
        return parsed

    return document


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small session for all tests that need one: two cores, and a task is tried twice.

    Its time zone is not UTC, so that shifted values show.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java_home()))
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        builder = SparkSession.builder.master("local[2,2]").appName("lakewarden-tests")
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        builder = builder.config("spark.sql.warehouse.dir", warehouse).config(map=SETTINGS)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Ports]:
    """One server for all tests that need no particular one."""
    with running_server() as ports:
        yield ports


def _unpack_atomically(archive: Path, target: Path) -> None:
    """Unpack beside the target and rename, so that a worker sees the whole table or none of it."""
    beside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    unpack(archive, beside)
    try:
        os.rename(beside, target)
    except OSError:
        # Another worker was quicker; its copy is as good as this one.
        if not target.is_dir():
            raise
        shutil.rmtree(beside)
