"""Answers: what goes back over the bridge, a value or an error; Python never raises there.

SQLSTATEs: what an error is called where SQL clients look for it.

Syntax errors: where a statement of ours stops making sense, and what was to stand there.
"""

import logging
import pickle
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.engine.kernel.errors import (
    Conflict,
    CorruptTable,
    Defect,
    InvalidRequest,
    LakewardenError,
    Unavailable,
    Unsettled,
)
from lakewarden.engine.spark.workers.older_sparks import message_of

_OF_KIND: Mapping[type[LakewardenError], str] = {
    # Syntax error or access rule violation.
    InvalidRequest: "42000",
    # Serialization failure: the client may try again.
    Conflict: "40001",
    # Connection failure.
    Unavailable: "08006",
    # Statement completion unknown.
    Unsettled: "40003",
    # Data corrupted.
    CorruptTable: "XX001",
    # Internal error.
    Defect: "XX000",
}
OF_CODE: Mapping[str, str] = {
    "unknown_procedure": "42883",
    "unknown_argument": "4274K",
    "repeated_argument": "4274K",
    "missing_argument": "4274K",
    "too_many_arguments": "42605",
    "bad_argument": "42804",
    "unknown_table": "42P01",
    "unknown_database": "42704",
    "bad_table_name": "42602",
    "not_a_table": "42809",
    "path_not_allowed": "42501",
    "read_only": "42501",
    "statement_not_allowed": "42501",
    "folder_of_table": "42501",
    "interrupted": "57014",
}


def sql_state(error: LakewardenError) -> str:
    """The SQLSTATE of an error, by its code or else by its kind."""
    of_kind = next((state for kind, state in _OF_KIND.items() if isinstance(error, kind)), "XX000")
    return OF_CODE.get(error.code, of_kind)


class StatementError(Exception):
    """A statement that can't be parsed; Spark shows it with its own pointer at the word."""

    def __init__(self, statement: str, offset: int, word: str, hint: str) -> None:
        before = statement[:offset]
        self.parts: Mapping[str, object] = {
            "statement": statement,
            "line": before.count("\n") + 1,
            "position": offset - (before.rfind("\n") + 1),
            "word": f"'{word}'" if word else "end of input",
            "hint": hint,
        }
        super().__init__(hint)


# What the JVM's unpickler knows in full.
PROTOCOL = 2
_LOG = logging.getLogger(__name__)


def answer(work: Callable[[], object]) -> bytes:
    """Do the work; its value, or how it failed."""
    try:
        reply: dict[str, object] = {"value": work()}
    except StatementError as error:
        reply = {"error": error.parts}
    except BaseException as error:
        reply = {"error": error_parts(error)}
    return pickle.dumps(reply, PROTOCOL)


def error_parts(error: BaseException) -> dict[str, str]:
    """The parts of an error for a client, in this order."""
    ours = _as_ours(error)
    return {
        "code": ours.code.upper(),
        "sql_state": sql_state(ours),
        "what": ours.what,
        "why": ours.why,
        "now": ours.now,
    }


def _as_ours(error: BaseException) -> LakewardenError:
    if isinstance(error, LakewardenError):
        return error
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return interrupted()
    if isinstance(error, PySparkException):
        return InvalidRequest(
            "statement_failed",
            what="Spark could not carry out a part of the statement.",
            why=_first_line(error),
            now="Correct the statement. CALL show_timeline shows its effects.",
        )
    # The client sees a sentence; where it happened is for the server's log, and nowhere else.
    _LOG.error("A statement failed unexpectedly.", exc_info=error)
    return Defect(
        "unexpected_failure",
        what="The statement failed unexpectedly.",
        why=f"{type(error).__name__}: {_first_line(error)}",
        now="Please report it with the server's log. CALL show_timeline shows its effects.",
    )


def interrupted() -> Unavailable:
    """The error of a statement that its client has cancelled."""
    return Unavailable(
        "interrupted",
        what="The statement was interrupted.",
        why="Its client cancelled it, or the server is stopping.",
        now="Run it again if you still need it. CALL show_plans lists pending plans.",
    )


def _first_line(error: BaseException) -> str:
    """What a Java error says without its stack."""
    if isinstance(error, Py4JJavaError):
        text = str(error.java_exception.getMessage())
    else:
        text = message_of(error) if isinstance(error, PySparkException) else str(error)
    return text.strip().partition("\n")[0]
