"""The committed jars are what their sources make."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakewarden.engine.spark.workers.older_sparks import jar_name
from lakewarden.sessions import jar_path

CHECKOUT = Path(__file__).parents[2]
BUILD = CHECKOUT / "scripts" / "build_jar.py"
JARS = CHECKOUT / "sql_ext" / "jvm"
VERSIONS = ("3.5.9", "4.3.0")


def manifest(jar_file: Path) -> dict[str, str]:
    with zipfile.ZipFile(jar_file) as jar:
        text = jar.read("META-INF/MANIFEST.MF").decode()
    return dict(line.split(": ", 1) for line in text.split("\r\n") if line)


def reported(*arguments: str) -> str:
    command = [sys.executable, str(BUILD), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_jar_was_built_from_these_sources(version: str) -> None:
    assert manifest(JARS / jar_name(version))["Sources-Digest"] == reported("--digest")


def test_the_jar_is_the_one_for_the_spark_at_hand() -> None:
    assert Path(jar_path()).samefile(JARS / jar_name("4.3.0"))


@pytest.mark.by_turns(2)
def test_the_same_sources_make_the_same_jars(tmp_path: Path) -> None:
    """Where this compiler is not the one that built them, there is nothing to compare.

    Nor is there for Spark 3.5 without its environment.
    """
    compiler = shutil.which("javac") and f"javac {reported('--compiler')}"
    if compiler == manifest(JARS / jar_name("4.3.0"))["Created-By"]:
        reported("--to", str(tmp_path))
        for again in tmp_path.iterdir():
            assert again.read_bytes() == (JARS / again.name).read_bytes()
