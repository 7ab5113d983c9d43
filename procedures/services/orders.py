"""Procedures that run plans: what their arguments mean, and what their rows share."""

from collections.abc import Mapping

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering import settings as clustering
from lakewarden.engine.services.compaction import settings as compaction
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.declaring.words import one_word
from lakewarden.service_calls import ServiceCall, ServiceOperation

# Hudi's older word for doing both.
_RUN = "run"
# A call that names one of these wants it heeded; otherwise an explicit call waits for none.
_TRIGGERS = (
    compaction.TRIGGER,
    compaction.DELTA_COMMITS,
    compaction.DELTA_SECONDS,
    clustering.INLINE_MAX_COMMITS,
)


def order_of(
    op: str | None,
    instants: str | None,
    *,
    limit: int | None,
    cancellable: bool | None,
    dry_run: bool,
    options: Mapping[str, str] | None,
    partitions: tuple[str, ...] | None = None,
) -> ServiceCall:
    """The order that a call gives; instants that are named are executed."""
    named = listed(instants)
    operation = _operation(op, is_named=bool(named))
    if named and operation is not ServiceOperation.EXECUTE:
        raise InvalidRequest(
            "bad_argument",
            what=f"op => {op!r} contradicts instants.",
            why="Instants name existing plans, which a call can only execute.",
            now="Leave op out, or use op => 'execute'.",
            argument="op",
        )
    return ServiceCall(
        operation=operation,
        instants=named,
        limit=_positive(limit),
        cancellable=cancellable,
        partitions=partitions,
        honour_trigger=_names_trigger(options),
        dry_run=dry_run,
        options=options,
    )


def state_word(state: InstantState | None) -> str | None:
    """A state in the words of Hudi's timeline, as far as it has one."""
    return None if state is None else state.value.partition(",")[0].upper()


def _operation(op: str | None, *, is_named: bool) -> ServiceOperation:
    if op is None:
        return ServiceOperation.EXECUTE if is_named else ServiceOperation.SCHEDULE_AND_EXECUTE
    word = one_word("op", op, (*ServiceOperation, _RUN))
    return ServiceOperation.SCHEDULE_AND_EXECUTE if word == _RUN else ServiceOperation(word)


def _names_trigger(options: Mapping[str, str] | None) -> bool:
    return any(name in (options or {}) for setting in _TRIGGERS for name in setting.names)


def _positive(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise InvalidRequest(
            "bad_argument",
            what=f"limit => {limit} is not valid.",
            why="A limit is the largest number of plans to run.",
            now="Give a number above zero, or leave it out.",
            argument="limit",
        )
    return limit
