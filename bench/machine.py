"""The machine that measures: what it is, and how much of it others used meanwhile."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from lakewarden.engine.run.executor import available_cores
from lakewarden.java_home import java_home

PACKAGES = ("pyarrow", "numpy", "fastavro", "isal", "pyspark")
_PROCESSES = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


class ForeignLoad:
    """Cores that processes other than ours and its children used since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._busy = _busy_seconds()
        self._own = family_seconds(os.getpid())

    def cores(self) -> float:
        foreign = (_busy_seconds() - self._busy) - (family_seconds(os.getpid()) - self._own)
        return max(0.0, foreign / (time.perf_counter() - self._began))


def description() -> dict[str, str]:
    """Hardware and versions, for whoever reads the figures."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_processor()}, {available_cores()} cores",
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Java": _java_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in (_PROCESSES / "cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def _java_version() -> str:
    java = java_home() / "bin" / "java"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    return answer.stderr.splitlines()[0]


def _busy_seconds() -> float:
    """Seconds that all cores together have worked since the machine started."""
    numbers = (_PROCESSES / "stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, numbers)
    return (user + nice + system + interrupts + soft + stolen) / _TICKS


def family_seconds(process: int) -> float:
    """Seconds that a process and all its children have worked, ended ones included."""
    children: dict[int, list[int]] = {}
    worked: dict[int, int] = {}
    for number, parent, ticks in filter(None, map(_process, _PROCESSES.glob("[0-9]*"))):
        children.setdefault(parent, []).append(number)
        worked[number] = ticks
    return _family_ticks(process, children, worked) / _TICKS


def _family_ticks(number: int, children: Mapping[int, list[int]], worked: Mapping[int, int]) -> int:
    own = worked.get(number, 0)
    return own + sum(_family_ticks(child, children, worked) for child in children.get(number, ()))


def _process(folder: Path) -> tuple[int, int, int] | None:
    """A process's number, its parent's, and the ticks that it and its ended children worked."""
    try:
        # The name before the last parenthesis may hold blanks.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(folder.name), int(fields[1]), sum(map(int, fields[11:15]))
