"""Failures of a storage as errors: which operation, on which path, and why, in words of ours.

The words of a cause are never repeated and the cause is never chained to an error about a remote
store, for both may hold credentials. Only its type, its error number and the short code of the
service's answer appear.
"""

import errno
import os
import re

from lakewarden.engine.kernel.errors import (
    CorruptTable,
    InvalidRequest,
    LakewardenError,
    Unavailable,
)

_SERVICE_CODE = re.compile(r"[A-Za-z0-9]{1,40}")
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def missing_file(uri: str) -> CorruptTable:
    """The error for a missing file that has to be there."""
    return CorruptTable(
        "missing_file",
        what=f"{uri} does not exist.",
        why="Another writer has removed it, or it is lost.",
        now="Read the timeline again; if it still names the file, the table needs repair.",
        path=uri,
        offset=None,
    )


def required(content: bytes | None, uri: str) -> bytes:
    """The content of a file that has to be there."""
    if content is None:
        raise missing_file(uri)
    return content


def unavailable(operation: str, uri: str, reason: str) -> Unavailable:
    """The storage did not do what it was asked for."""
    return _unavailable("storage_unavailable", operation, uri, reason, _RETRY)


def no_conditional_replace(uri: str) -> InvalidRequest:
    """The storage cannot compare and replace in one step."""
    return InvalidRequest(
        "unsupported_conditional_replace",
        what=f"The storage of {uri} has no conditional replace.",
        why="It cannot compare and replace a file in one step.",
        now="Use something that needs no conditional writes, such as another lock provider.",
        path=uri,
    )


def failure(operation: str, uri: str, cause: Exception) -> LakewardenError:
    """The error that stands for what a file system or a client library raised."""
    if isinstance(cause, LakewardenError):
        return cause
    number = cause.errno if isinstance(cause, OSError) else None
    reason = reason_of(cause)
    if number == errno.ENAMETOOLONG:
        return InvalidRequest(
            "invalid_path", what=f"Cannot {operation} {uri}.", why=reason, now=_SHORTEN, path=uri
        )
    if isinstance(cause, PermissionError) or number in _DENIED:
        return _unavailable("storage_denied", operation, uri, reason, _GRANT)
    if number in _FULL:
        return _unavailable("storage_full", operation, uri, reason, _FREE)
    return unavailable(operation, uri, reason)


def reason_of(cause: BaseException) -> str:
    """The public part of a cause: its type, the system's words for its number, a service code."""
    words = [type(cause).__name__]
    if isinstance(cause, OSError) and cause.errno:
        words.append(os.strerror(cause.errno))
    code = service_code(cause)
    if code is not None:
        words.append(f"the service answered {code}")
    return ": ".join(words) + "."


def service_code(cause: BaseException | None) -> str | None:
    """The code of a web service's answer, such as NoSuchBucket, behind a translated error."""
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return code if _SERVICE_CODE.fullmatch(code) else None
        cause = cause.__cause__
    return None


_RETRY = "Check that the storage can be reached, then try again."
_GRANT = "Grant the right to this path, or open the table with other credentials."
_FREE = "Free some space, then try again."
_SHORTEN = "Shorten the name."


def _unavailable(code: str, operation: str, uri: str, reason: str, now: str) -> Unavailable:
    return Unavailable(
        code,
        what=f"Cannot {operation} {uri}.",
        why=reason,
        now=now,
        operation=operation,
        path=uri,
    )
