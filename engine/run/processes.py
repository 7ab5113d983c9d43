"""The process port: which process this is, and whether another one of this machine is gone.

Process numbers are used again, and containers count from 1 each. So a process is known by the
machine, its running system, its space of numbers, its number and the moment it began.

Interrupts: SIGTERM and Ctrl-C make a process abort its attempt before it ends.

By default SIGTERM ends a process at once, and what it had claimed would wait until its last
heartbeat has expired. So while an attempt runs, SIGTERM is raised as an exception in the main
thread. Its handlers abort the attempt; then the signal is raised again for its first handler.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

_SIGNALLED_BASE = 128
_is_letting_go = threading.Event()


class Terminated(SystemExit):
    """SIGTERM has come. No handler of errors sees it; uncaught it ends the process as usual."""

    def __init__(self) -> None:
        super().__init__(_SIGNALLED_BASE + signal.SIGTERM)


def interruption_watch() -> Callable[[], bool]:
    """Tells whether the caller's work was interrupted; the answer may be asked for by any thread.

    Workers of a pool see no signal themselves, and the main thread waits for them.
    """
    return _is_letting_go.is_set if _is_main() else _never


def always_wanted() -> None:
    """For work that no caller cancels."""


@contextmanager
def stopping_on_signal() -> Iterator[None]:
    """Have SIGTERM raised as `Terminated` in here, and raised again when the attempt is aborted.

    Only the main thread has signals: elsewhere this does nothing. A handler that was installed for
    SIGTERM before is called at the end, one for Ctrl-C at once.
    """
    termination, interruption = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    # What was not installed by Python could not be put back.
    if not _is_main() or termination is None:
        yield
        return
    came: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        came.append(number)
        _is_letting_go.set()
        raise Terminated

    def interrupt(number: int, frame: FrameType | None) -> None:
        assert callable(interruption)
        _is_letting_go.set()
        interruption(number, frame)
        # A handler that returns from Ctrl-C without an exception wants the work to continue.
        _is_letting_go.clear()

    signal.signal(signal.SIGTERM, terminate)
    if callable(interruption):
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, termination)
        if callable(interruption):
            signal.signal(signal.SIGINT, interruption)
        _is_letting_go.clear()
        if came:
            signal.raise_signal(signal.SIGTERM)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _never() -> bool:
    return False


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
