"""Versions of S3 objects: reading one together with its content, and replacing that one only.

fsspec has no call for either, so these speak to S3 through the connection that s3fs has made.
"""

import fsspec
from fsspec.asyn import sync

from lakewarden.engine.storage.port import Versioned


def s3_read_versioned(filesystem: fsspec.AbstractFileSystem, key: str) -> Versioned:
    """An object and its ETag from one answer, so that they belong together."""
    answer: Versioned = sync(filesystem.loop, _read, filesystem, key)
    return answer


def s3_put_if_match(
    filesystem: fsspec.AbstractFileSystem, key: str, payload: bytes, version: str
) -> None:
    """Replace an object whose ETag is still that one."""
    filesystem.pipe_file(key, payload, IfMatch=version)


async def _read(filesystem: fsspec.AbstractFileSystem, key: str) -> Versioned:
    bucket, name, _ = filesystem.split_path(key)
    answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=name)
    try:
        content = await answer["Body"].read()
    finally:
        answer["Body"].close()
    return Versioned(bytes(content), str(answer["ETag"]))
