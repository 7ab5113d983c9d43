"""The S3 server of the storage tests, for locks on it."""

from tests.engine.storage.conftest import s3_location, s3_server

__all__ = ["s3_location", "s3_server"]
