"""The process port: a process is gone only when that is certain."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lakewarden.engine.run.processes import ProcessMark, SystemProcesses

TELL = (
    "import sys\n"
    "from lakewarden.engine.run.processes import SystemProcesses\n"
    "print(SystemProcesses().mine().started, flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", TELL], stdin=pipe, stdout=pipe) as process:
        yield process
        process.kill()


def mark_of(child: "subprocess.Popen[bytes]") -> ProcessMark:
    assert child.stdout is not None
    started = child.stdout.readline().decode().strip()
    return replace(SystemProcesses().mine(), pid=child.pid, started=started)


def test_this_process_is_there() -> None:
    processes = SystemProcesses()
    mine = processes.mine()
    assert mine.pid == os.getpid()
    assert mine == processes.mine()
    assert not processes.is_gone(mine)


def test_a_killed_process_is_gone_even_before_its_parent_looks(
    child: "subprocess.Popen[bytes]",
) -> None:
    mark = mark_of(child)
    assert not SystemProcesses().is_gone(mark)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert SystemProcesses().is_gone(mark)
    child.wait()
    assert SystemProcesses().is_gone(mark)


def test_a_number_used_again_is_another_process() -> None:
    mine = SystemProcesses().mine()
    assert SystemProcesses().is_gone(replace(mine, started="1"))


@pytest.mark.parametrize("unknown", [{"machine": "elsewhere"}, {"machine": ""}, {"started": ""}])
def test_what_is_not_known_is_not_gone(unknown: dict[str, str]) -> None:
    mine = replace(SystemProcesses().mine(), pid=2**22 + 1)
    assert not SystemProcesses().is_gone(replace(mine, **unknown))


@pytest.mark.parametrize("pid", [2**22 + 1, 2**40, 2**70, -(2**70)])
def test_a_number_no_process_has_is_gone(pid: int) -> None:
    assert SystemProcesses().is_gone(replace(SystemProcesses().mine(), pid=pid))
