"""An S3 server in a process of its own; prints its port.

It answers one request at a time: of two conditional creates at once moto may grant both, which S3
never does, as it looks for an object and creates it in two steps. Connections stay open. Given a
number of milliseconds it lets each request wait so long first, as a distant service does, beside
all others; and it tells what it was asked for at the path `REQUESTS`. At the path `OUTAGE` it hears
after how many requests it breaks off all connections, and for how many seconds.
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterable
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# No name of a bucket, so that no request of S3 is meant.
REQUESTS = "/--requests--"
# Query: `after`, `seconds`, and `is_done` if the last request before it is carried out.
OUTAGE = "/--outage--"


class Outage:
    """When the server is gone; it keeps what it has."""

    def __init__(self) -> None:
        self._left = -1
        self._seconds = self._until = 0.0
        self._is_done = False

    def plan(self, query: str) -> None:
        said = dict(parse_qsl(query))
        self._left, self._seconds = int(said["after"]), float(said["seconds"])
        self._is_done = "is_done" in said

    def meets(self) -> bool:
        """Whether a request gets no answer."""
        self._left -= 1
        if self._left == 0:
            self._until = time.monotonic() + self._seconds
        return time.monotonic() < self._until

    @property
    def carries_out(self) -> bool:
        """Whether the request that meets it is carried out all the same."""
        return self._left == 0 and self._is_done


class _Handler(WSGIRequestHandler):
    """Keeps a connection for the next request, and lets no answer wait for more of it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of requests that are answered."""


def broken_off(environment: WSGIEnvironment) -> Iterable[bytes]:
    """What a client gets whose server is gone: the end of its connection."""
    environment["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def serve(wait_seconds: float) -> None:
    application, turn = create_backend_app("s3"), threading.Lock()
    asked: list[tuple[str, str]] = []
    outage = Outage()

    def told(start: StartResponse) -> Iterable[bytes]:
        said = json.dumps(asked).encode()
        asked.clear()
        start("200 OK", [("Content-Length", str(len(said)))])
        return [said]

    def one_at_a_time(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        query = environment["QUERY_STRING"]
        if path == OUTAGE:
            outage.plan(query)
        if path in (OUTAGE, REQUESTS):
            return told(start)
        time.sleep(wait_seconds)
        is_gone = outage.meets()
        if is_gone and not outage.carries_out:
            return broken_off(environment)
        with turn:
            answer: Iterable[bytes] = application(environment, start)
        if is_gone:
            return broken_off(environment)
        asked.append((environment["REQUEST_METHOD"], f"{path}?{query}"))
        return answer

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=_Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.0)
