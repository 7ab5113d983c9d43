"""An S3 server in a process of its own; prints its port.

It answers one request at a time: of two conditional creates at once moto may grant both, which S3
never does, as it looks for an object and creates it in two steps. Connections stay open. Given a
number of milliseconds it lets each request wait so long first, as a distant service does, beside
all others; and it tells what it was asked for at the path `REQUESTS`.
"""

import json
import sys
import threading
import time
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# No name of a bucket, so that no request of S3 is meant.
REQUESTS = "/--requests--"


class _Handler(WSGIRequestHandler):
    """Keeps a connection for the next request, and lets no answer wait for more of it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of requests that are answered."""


def serve(wait_seconds: float) -> None:
    application, turn = create_backend_app("s3"), threading.Lock()
    asked: list[tuple[str, str]] = []

    def told(start: StartResponse) -> Iterable[bytes]:
        said = json.dumps(asked).encode()
        asked.clear()
        start("200 OK", [("Content-Length", str(len(said)))])
        return [said]

    def one_at_a_time(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        if path == REQUESTS:
            return told(start)
        time.sleep(wait_seconds)
        with turn:
            answer: Iterable[bytes] = application(environment, start)
        query = environment["QUERY_STRING"]
        asked.append((environment["REQUEST_METHOD"], f"{path}?{query}"))
        return answer

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=_Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.0)
