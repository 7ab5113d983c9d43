"""Executing: one attempt at one plan, from the guard to the commit."""

from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.run.interrupts import stopping_on_signal
from lakewarden.engine.services.execution.result import Execution
from lakewarden.engine.services.planning.table_service import TableService
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Receipt, commit
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_writing
from lakewarden.engine.write.phases import Phases

_NOT_PUBLISHED = (
    "It is committed, but the storage failed before it was published: the next operation on "
    "the table publishes it."
)


def execute(context: Context, service: TableService, instant: str) -> Execution:
    """Execute a pending plan; one that has completed already is no error.

    An attempt that fails or is interrupted is aborted. An immutable plan then waits for the next
    attempt, a cancellable one is taken off the timeline.
    """
    with stopping_on_signal():
        return _attempt_plan(context, service, instant)


def _attempt_plan(context: Context, service: TableService, instant: str) -> Execution:
    phases = Phases(context.ports.clock, context.ports.events)
    with phases("start"):
        started = start(context, instant, service.service)
    if started.completed is not None:
        return Execution(
            instant=instant,
            service=service.service,
            completed=started.completed.completed or "",
            was_completed_before=True,
        )
    attempt = started.attempt
    assert attempt is not None
    with attempt:
        with aborting_on_error(context, attempt), phases("work"):
            outcome = service.work(context, attempt, _plan(context, service, attempt))
        with phases("commit"):
            receipt = commit(context, attempt, outcome)
    return _execution(service, receipt, outcome.metadata, phases)


def _plan(context: Context, service: TableService, attempt: Attempt) -> bytes:
    """The plan as it is published."""
    files = load_for_writing(context).pending(attempt.instant)
    requested = None if files is None else files.requested
    if requested is None:
        # The ledger names the process that has taken over or cancelled it meanwhile.
        attempt.check_claim()
        raise InvalidRequest(
            "unknown_plan",
            what=f"The plan of {service.service} {attempt.instant} is gone.",
            why="Another engine has rolled it back.",
            now="Look at the timeline for its state.",
            instant=attempt.instant,
        )
    return context.storage.read(requested.entry.path)


def _execution(
    service: TableService, receipt: Receipt, metadata: CommitMetadata, phases: Phases
) -> Execution:
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    return Execution(
        instant=receipt.instant,
        service=service.service,
        completed=receipt.completion_time,
        rows_written=sum(stat.num_writes for stat in stats),
        files=len(stats),
        file_groups=len({(stat.partition_path, stat.file_id) for stat in stats}),
        bytes_written=sum(stat.file_size_in_bytes for stat in stats),
        seconds=phases.seconds,
        errors=() if receipt.is_published else (_NOT_PUBLISHED,),
    )
