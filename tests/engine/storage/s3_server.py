"""An S3 server in a process of its own; prints its port.

It answers one request at a time. With threads, moto looks for an object and creates it in two
steps, so that two conditional creates may both be granted, which S3 never does.
"""

import logging

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def serve() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=False)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
