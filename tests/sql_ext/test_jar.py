"""The committed jar is what its sources make."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lakewarden

CHECKOUT = Path(__file__).parents[2]
BUILD = CHECKOUT / "scripts" / "build_jar.py"
JAR = Path(lakewarden.jar_path())


def manifest() -> dict[str, str]:
    with zipfile.ZipFile(JAR) as jar:
        text = jar.read("META-INF/MANIFEST.MF").decode()
    return dict(line.split(": ", 1) for line in text.split("\r\n") if line)


def reported(*arguments: str) -> str:
    command = [sys.executable, str(BUILD), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_jar_was_built_from_these_sources() -> None:
    assert manifest()["Sources-Digest"] == reported("--digest")


@pytest.mark.by_turns(2)
def test_the_same_sources_make_the_same_jar(tmp_path: Path) -> None:
    """Where this compiler is not the one that built it, there is nothing to compare."""
    if shutil.which("javac") and f"javac {reported('--compiler')}" == manifest()["Created-By"]:
        reported("--to", str(tmp_path / "again.jar"))
        assert (tmp_path / "again.jar").read_bytes() == JAR.read_bytes()
