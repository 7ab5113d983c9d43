"""Answers: what goes back over the bridge, a value or an error; Python never raises there."""

import logging
import pickle
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.engine.kernel.errors import Defect, InvalidRequest, LakewardenError, Unavailable
from lakewarden.sql_ext.session.sql_states import sql_state
from lakewarden.sql_ext.session.syntax_error import StatementError

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
    elif isinstance(error, PySparkException):
        text = str(error.getMessage() or error)
    else:
        text = str(error)
    return text.strip().partition("\n")[0]
