"""A server in a process of its own, as people start it, for as long as a test needs it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.process_gauges import Reading, reading

END_SECONDS_MAX = 200
# Threads that wait for work soon go home, so that what stays is what was forgotten.
_KEEPALIVE = "keepalive.time=1s"
_SETTINGS = (
    f"spark.hadoop.hive.server2.thrift.worker.{_KEEPALIVE}",
    f"spark.hadoop.hive.server2.async.exec.{_KEEPALIVE}",
)
# Such a short life does not pay for optimised code; and a heap that is given back tells what is in
# use.
SOON = ("--conf", "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
_ADDRESS = re.compile(r"(?P<scheme>hive2|sc)://[^:]+:(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a running server is found on this machine."""

    thrift: int
    connect: int
    pid: int
    # What its process held before anybody came.
    at_rest: Reading


@contextmanager
def running_server(*arguments: str) -> Iterator[Ports]:
    """`lakewarden serve` at free ports; it is asked to end by SIGTERM, and has to."""
    command = [
        sys.executable,
        "-m",
        "lakewarden",
        "serve",
        "--port",
        "0",
        "--connect-port",
        "0",
        *SOON,
    ]
    for setting in _SETTINGS:
        command += ["--conf", setting]
    server = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        ports = {found["scheme"]: int(found["port"]) for found in _ADDRESS.finditer(said)}
        yield Ports(ports["hive2"], ports["sc"], server.pid, reading(server.pid))
        server.send_signal(signal.SIGTERM)
        assert server.wait(END_SECONDS_MAX) == 0
    finally:
        server.kill()
        server.communicate()
