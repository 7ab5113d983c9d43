"""The process port: which process this is, and whether another one of this machine is gone.

Process numbers are used again, and containers count from 1 each. So a process is known by the
machine, its running system, its space of numbers, its number and the moment it began.
"""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_STATUS_ENDED = ("Z", "X")
# Fields of a process's status line, counted behind its name, which may hold spaces and brackets.
_STATE, _STARTED = 0, 19
_TEXT_PARTS = 3


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """What tells one process from all others; `machine` and `started` are empty if not known."""

    host: str
    machine: str
    pid: int
    started: str

    @property
    def text(self) -> str:
        """The mark as files carry it."""
        return f"{self.pid} {self.started} {self.machine}"


def mark_from(text: str, host: str = "") -> ProcessMark | None:
    """The mark in a file's text; None where there is none, as in what other engines write."""
    words = text.split(" ", _TEXT_PARTS - 1)
    if len(words) != _TEXT_PARTS or not words[0].isdecimal():
        return None
    return ProcessMark(host, machine=words[2], pid=int(words[0]), started=words[1])


class Processes(Protocol):
    """What is known of processes."""

    def mine(self) -> ProcessMark: ...

    def is_gone(self, mark: ProcessMark) -> bool:
        """Whether a process has surely ended; False where that cannot be known from here."""
        ...


class SystemProcesses:
    """The processes of this machine; where there is no `/proc`, none is ever known to be gone."""

    def mine(self) -> ProcessMark:
        pid = os.getpid()
        status = _status(pid)
        started = status[_STARTED] if status else ""
        return ProcessMark(socket.gethostname(), _machine(), pid, started)

    def is_gone(self, mark: ProcessMark) -> bool:
        if not (mark.machine and mark.started and mark.machine == _machine()):
            return False
        status = _status(mark.pid)
        if status is None:
            return not _exists(mark.pid)
        return status[_STATE] in _STATUS_ENDED or status[_STARTED] != mark.started


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _status(pid: int) -> list[str] | None:
    with suppress(OSError):
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = line.rpartition(")")[2].split()
        return fields if len(fields) > _STARTED else None
    return None


def _exists(pid: int) -> bool:
    # Processes of other users may be hidden, and are there all the same.
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        return True
    return True
