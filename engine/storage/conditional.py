"""Conditional requests to object stores: exclusive creation and replacing, in spite of retries.

A client library repeats a request whose answer got lost, and the repeated one is then refused
because of the first. So the file is read back after every answer but a plain success.

Some stores speak S3 and ignore the condition. Therefore the first win of a connection is asked
for a second time, with the same content; a store that grants it again is no judge of races.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.storage.creations import judged
from lakewarden.engine.storage.failures import reason_of, service_code
from lakewarden.engine.storage.port import Creation, Lost, Unknown, Versioned, Won

CONFLICT_ATTEMPTS_MAX = 4
_PRECONDITION_CODES = ("PreconditionFailed", "412")
# S3 says so when a rival removed the object meanwhile: surely refused, and worth another try.
_CONFLICT_CODE = "ConditionalRequestConflict"

Request = Callable[[], object]
ReadBack = Callable[[], bytes | None]
ReadState = Callable[[], Versioned | None]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a request was not granted."""

    reason: str
    exists: bool
    is_conflict: bool


class ConditionalRequests:
    """The requests of one kind on one connection, and whether its condition has been proven."""

    def __init__(self) -> None:
        self._is_proven = False

    def create(self, payload: bytes, request: Request, read_back: ReadBack) -> Creation:
        """Ask to create a file, and read back whatever is not granted."""
        return self._asked(request, lambda refusal: _judged(payload, refusal, read_back))

    def replace(
        self, payload: bytes, version: str, request: Request, read_state: ReadState
    ) -> Creation:
        """Ask to replace a file in that state, and look at its state if that is not granted."""
        return self._asked(
            request, lambda refusal: _judged_state(payload, version, refusal, read_state)
        )

    def _asked(self, request: Request, judge: Callable[[_Refusal], Creation]) -> Creation:
        answer: Creation = Unknown("Never asked.")
        for _ in range(CONFLICT_ATTEMPTS_MAX):
            found = _answer(request)
            if not isinstance(found, _Refusal):
                return self._proven(request, found)
            answer = judge(found)
            if not (found.is_conflict and isinstance(answer, Unknown)):
                break
        return answer

    def _proven(self, request: Request, found: object) -> Creation:
        if not self._is_proven:
            again = _answer(request)
            if not isinstance(again, _Refusal):
                return Unknown(
                    "The store ignores the condition of a request: it granted the same one twice. "
                    "Two writers could both believe to have won."
                )
            self._is_proven = again.exists
        return Won(found if isinstance(found, str) else None)


def create_unless_seen(
    payload: bytes, put: Callable[[bytes], None], read_back: ReadBack
) -> Creation:
    """Look first, then write: right for a single writer only."""
    content = read_back()
    if content is not None:
        return judged(payload, content, "", refused=True)
    try:
        put(payload)
    except LakewardenError as error:
        return _judged(payload, _Refusal(error.why, exists=False, is_conflict=False), read_back)
    return Won()


def _answer(request: Request) -> object:
    """What the store answers, or why it does not."""
    try:
        return request()
    except Exception as cause:
        code = service_code(cause)
        exists = isinstance(cause, FileExistsError) or code in _PRECONDITION_CODES
        return _Refusal(reason_of(cause), exists, code == _CONFLICT_CODE)


def _judged(payload: bytes, refusal: _Refusal, read_back: ReadBack) -> Creation:
    try:
        content = read_back()
    except LakewardenError as error:
        return Unknown(f"{refusal.reason} Reading back failed as well: {error.why}")
    return judged(payload, content, refusal.reason, refused=refusal.exists)


def _judged_state(
    payload: bytes, version: str, refusal: _Refusal, read_state: ReadState
) -> Creation:
    """Who replaced the file; while it is in its old state, a broken request may still arrive."""
    try:
        state = read_state()
    except LakewardenError as error:
        return Unknown(f"{refusal.reason} Reading back failed as well: {error.why}")
    if state is None:
        return Unknown(f"{refusal.reason} The file is gone.")
    if state.content == payload:
        return Won(state.version)
    return Unknown(refusal.reason) if state.version == version else Lost(state.content)
