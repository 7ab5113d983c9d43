"""Gauges: what a running process holds, as the machine tells it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Reading:
    """Threads by their names without numbers, open sockets, and memory."""

    threads: Counter[str]
    sockets: int
    resident_mib: int

    @property
    def threads_count(self) -> int:
        return self.threads.total()

    def __str__(self) -> str:
        return f"{self.threads_count} threads, {self.sockets} sockets, {self.resident_mib} MiB"


def reading(pid: int) -> Reading:
    """What a process holds now."""
    folder = PROC / str(pid)
    fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Reading(
        threads=Counter(_names(folder)),
        sockets=sum(map(_is_socket, (folder / "fd").iterdir())),
        resident_mib=int(fields["VmRSS"].split()[0]) // 1024,
    )


def java_below(pid: int) -> int:
    """The JVM that a process has started."""
    (found,) = [child for child in _children(pid) if _name(PROC / str(child)) == "java"]
    return found


def _names(folder: Path) -> Iterator[str]:
    for task in (folder / "task").iterdir():
        name = _name(task)
        if name is not None:
            yield name.rstrip("0123456789")


def _name(folder: Path) -> str | None:
    return _text(folder / "comm")


def _text(file: Path) -> str | None:
    """What a file says of a thread or process; None for one that has just ended."""
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _is_socket(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except OSError:
        return False


def _children(pid: int) -> Iterator[int]:
    for task in (PROC / str(pid) / "task").iterdir():
        yield from map(int, (_text(task / "children") or "").split())
