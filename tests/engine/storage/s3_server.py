"""An S3 server in a process of its own; prints its port.

It answers one request at a time: of two conditional creates at once moto may grant both, which S3
never does, as it looks for an object and creates it in two steps. Connections stay open.
"""

import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class _Handler(WSGIRequestHandler):
    """Keeps a connection for the next request, and lets no answer wait for more of it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of requests that are answered."""


def serve() -> None:
    application, turn = create_backend_app("s3"), threading.Lock()

    def one_at_a_time(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        with turn:
            answer: Iterable[bytes] = application(environment, start)
            return answer

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=_Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
