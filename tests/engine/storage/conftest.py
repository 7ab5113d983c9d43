"""An S3 server of this test session, on a free port of this machine."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import s3fs

from lakewarden.engine.storage.port import Location

ACCESS_KEY = "ACCESS-KEY-NOBODY-MAY-SEE"
SECRET_KEY = "SECRET-KEY-NOBODY-MAY-SEE"
SERVER = Path(__file__).with_name("s3_server.py")


@dataclass(frozen=True)
class S3Server:
    """The server's address, and the buckets on it."""

    port: int

    @property
    def options(self) -> dict[str, object]:
        return s3_options(self.port)

    def fresh_bucket(self) -> Location:
        bucket = f"bucket-{uuid4().hex}"
        filesystem = s3fs.S3FileSystem(**self.options)
        filesystem.call_s3("create_bucket", Bucket=bucket)
        return Location(f"s3://{bucket}/table", self.options)


def s3_options(port: int) -> dict[str, object]:
    """Options as a user gives them: credentials, the address of the service, few retries."""
    return {
        "key": ACCESS_KEY,
        "secret": SECRET_KEY,
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"},
        "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 5},
    }


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    command = [sys.executable, str(SERVER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield S3Server(int(server.stdout.readline()))
        finally:
            server.terminate()


@pytest.fixture
def s3_location(s3_server: S3Server) -> Location:
    """A folder in an empty bucket of its own."""
    return s3_server.fresh_bucket()
