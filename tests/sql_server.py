"""A server in a process of its own, as people start it, for as long as a test needs it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

START_SECONDS_MAX = 120
END_SECONDS_MAX = 60
_ADDRESS = re.compile(r"(?P<scheme>hive2|sc)://[^:]+:(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a running server is found on this machine."""

    thrift: int
    connect: int
    pid: int


@contextmanager
def running_server(*arguments: str) -> Iterator[Ports]:
    """`lakewarden serve` at free ports; it is asked to end by SIGTERM, and has to."""
    command = [sys.executable, "-m", "lakewarden", "serve", "--port", "0", "--connect-port", "0"]
    server = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        ports = {found["scheme"]: int(found["port"]) for found in _ADDRESS.finditer(said)}
        yield Ports(ports["hive2"], ports["sc"], server.pid)
        server.send_signal(signal.SIGTERM)
        assert server.wait(END_SECONDS_MAX) == 0
    finally:
        server.kill()
        server.communicate()
