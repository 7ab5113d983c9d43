"""Inline services: what is done for a table right after a write, as its settings ask for.

In Hudi's order: clean, archive, compaction, log compaction, clustering. The write is committed by
then, so what fails here must never look as if the write had failed.

Steps of `services-beside`: begin, run, end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.kernel.errors import Conflict, LakewardenError, Unsettled
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.kernel.settings import Setting, flag
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.processes import always_wanted
from lakewarden.engine.services.archive.run import archive_if_due
from lakewarden.engine.services.clean.draft import CleanRequest
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering import settings as clustering
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction import settings as compaction
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import (
    RunLimits,
    pending_plans,
    run_pending,
    run_plan,
)
from lakewarden.engine.services.log_compaction import service as log_compaction
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.metadata_table.service import (
    MetadataService,
    maintain_metadata_table,
)
from lakewarden.engine.services.planning.plan_request import PlanRequest, Refusal
from lakewarden.engine.services.planning.schedule import TableService, schedule
from lakewarden.engine.services.retention.settings import (
    ARCHIVE_ASYNC,
    ARCHIVE_AUTOMATIC,
    CLEAN_ASYNC,
    CLEAN_AUTOMATIC,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.write.request import Commit
from lakewarden.engine.write.settings import BESIDE

SERVICES_ENABLED = Setting(
    "hoodie.table.services.enabled",
    True,
    flag,
    "Whether writes may run table services at all after their commits",
)
FAILS_WRITES = Setting(
    "hoodie.fail.writes.on.inline.table.service.exception",
    True,
    flag,
    (
        "Whether a service that fails after a commit makes the write raise an error, which says "
        "that it is committed; otherwise the result holds the errors"
    ),
)
INLINE_SETTINGS: tuple[Setting[object], ...] = (SERVICES_ENABLED, FAILS_WRITES, BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tended:
    """What one service has done after a write."""

    service: str
    # The instants it has completed, or put on the timeline.
    instants: tuple[str, ...] = ()
    why_nothing: str | None = None
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class AfterWrite:
    """A commit that knows what failed after it, and what every service has done."""

    commit: Commit
    tended: tuple[Tended, ...] = ()


def after_write(context: Context, commit: Commit) -> AfterWrite:
    """Run the services that are due after a write; one that fails does not keep others from it.

    If the settings say so, the first failure is raised at the end, as an error that says that the
    write is committed. A plan that another process runs is no failure: the next write tries again.
    Those that run beside writes raise nothing, and are not waited for.
    """
    if commit.instant is None:
        return AfterWrite(commit)
    if context.settings[BESIDE] and context.settings[SERVICES_ENABLED]:
        _begin_beside(context)
        failures = context.memory.services.taken_failures()
        return AfterWrite(replace(commit, errors=(*commit.errors, *failures)))
    try:
        tended = tuple(_tend(context))
    except BaseException as interruption:
        interruption.add_note(_is_committed(commit))
        raise
    failed = [one for one in tended if one.failure is not None]
    grave = [one for one in failed if not isinstance(one.failure, Conflict)]
    is_raised = context.settings[FAILS_WRITES]
    if grave and is_raised:
        raise _failed(commit, grave[0]) from grave[0].failure
    errors = tuple(f"The {one.service} after it failed: {one.failure}" for one in failed)
    # Of services that ran beside an earlier write.
    errors = (*context.memory.services.taken_failures(), *errors)
    return AfterWrite(replace(commit, errors=(*commit.errors, *errors)), tended)


def _begin_beside(context: Context) -> None:
    """Step `services-beside.begin`: a thread for what is due, unless one runs still.

    It goes on when its caller is cancelled, and leaves the cores to those who write.
    """
    services = context.memory.services
    if not services.begins():
        return
    ports = replace(context.ports, executor=LocalExecutor(1), check_wanted=always_wanted)
    beside = replace(context, ports=ports)
    context.ports.background.start(partial(_run_beside, beside))


def _run_beside(context: Context) -> None:
    """Steps `services-beside.run` and `services-beside.end`."""
    failures: list[str] = []
    try:
        for one in _tend(context):
            if one.failure is None:
                continue
            figures = {"service": one.service, "reason": str(one.failure)}
            context.ports.events(Event("service_left", figures))
            # A plan that another process runs is no failure.
            if not isinstance(one.failure, Conflict):
                failures.append(f"The {one.service} beside writes failed: {one.failure}")
    except Exception as failure:
        figures = {"service": "services", "reason": str(failure)}
        context.ports.events(Event("service_left", figures))
        failures.append(f"The services beside writes failed: {failure}")
    finally:
        context.memory.services.ends(failures)


def _tend(context: Context) -> Iterator[Tended]:
    if not context.settings[SERVICES_ENABLED]:
        return
    look = _Look(context)
    for service, work in _services_to_run(context):
        try:
            tended = work(context, look)
        except Exception as failure:
            tended = Tended(service=service, failure=failure)
        if tended.instants or tended.failure is not None:
            look.forget()
        yield tended


class _Look:
    """The table after the write, by which services decide whether they are due.

    One look does for all of them, as most have nothing to do after most writes; after one that had
    it is taken anew.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: Snapshot | None = None

    @property
    def seen(self) -> Snapshot:
        if self._seen is None:
            self._seen = load_for_writing(self._context)
        return self._seen

    def forget(self) -> None:
        self._seen = None


_Work = Callable[[Context, _Look], Tended]


def _services_to_run(context: Context) -> Iterator[tuple[str, _Work]]:
    """The services that the settings ask for, in the order in which Hudi runs them."""
    settings = context.settings
    if settings[CLEAN_AUTOMATIC] and not settings[CLEAN_ASYNC]:
        yield "clean", _clean
    if settings[ARCHIVE_AUTOMATIC] and not settings[ARCHIVE_ASYNC]:
        yield "archive", _archive
    for service, is_run, is_scheduled in (
        (COMPACTION, compaction.INLINE, compaction.SCHEDULE_INLINE),
        (LOG_COMPACTION, log_compaction.INLINE, None),
        (CLUSTERING, clustering.INLINE, clustering.SCHEDULE_INLINE),
    ):
        if settings[is_run]:
            yield service.service, _running(service)
        elif is_scheduled is not None and settings[is_scheduled]:
            yield service.service, _scheduling(service)


def _clean(context: Context, look: _Look) -> Tended:
    done = clean(context, CleanRequest(honour_trigger=True), seen=look.seen)
    if done.instant or done.finished or done.settled:
        look.forget()
    _maintain_metadata_table(context, look, MetadataService.CLEAN)
    instants = () if done.instant is None else (done.instant,)
    return Tended(service="clean", instants=instants, why_nothing=done.why_nothing)


def _archive(context: Context, look: _Look) -> Tended:
    done = archive_if_due(context, look.seen)
    if done is not None:
        look.forget()
    _maintain_metadata_table(context, look, MetadataService.ARCHIVE)
    if done is None:
        return Tended(service="archive", why_nothing="No instant is due for archiving.")
    instants = tuple(instant.requested for instant in done.instants)
    return Tended(service="archive", instants=instants, why_nothing=done.why_nothing)


def _maintain_metadata_table(context: Context, look: _Look, service: MetadataService) -> None:
    """The same for the metadata table, which writes compact themselves."""
    done = maintain_metadata_table(
        context, services=(service,), honour_triggers=True, seen=look.seen
    )
    if done:
        look.forget()


def _running(service: TableService) -> _Work:
    """Pending plans are executed first, then a new plan if one is due."""

    def work(context: Context, look: _Look) -> Tended:
        done: list[str] = []
        if pending_plans(context, service, look.seen):
            done += run_pending(context, service, RunLimits()).instants
            look.forget()
        scheduled = schedule(context, service, PlanRequest(honour_trigger=True), look.seen)
        if isinstance(scheduled, Refusal):
            why = None if done else scheduled.why
            return Tended(service=service.service, instants=tuple(done), why_nothing=why)
        done += run_plan(context, service, scheduled.instant).instants
        return Tended(service=service.service, instants=tuple(done))

    return work


def _scheduling(service: TableService) -> _Work:
    """A new plan if one is due and none is waiting, for others to execute."""

    def work(context: Context, look: _Look) -> Tended:
        pending = pending_plans(context, service, look.seen)
        if pending:
            why = f"The plan {pending[0]} is already pending."
            return Tended(service=service.service, why_nothing=why)
        scheduled = schedule(context, service, PlanRequest(honour_trigger=True), look.seen)
        if isinstance(scheduled, Refusal):
            return Tended(service=service.service, why_nothing=scheduled.why)
        return Tended(service=service.service, instants=(scheduled.instant,))

    return work


def _is_committed(commit: Commit) -> str:
    return f"The {commit.operation} {commit.instant} is committed; do not write its rows again."


def _failed(commit: Commit, tended: Tended) -> LakewardenError:
    return Unsettled(
        "inline_service_failed",
        what=(
            f"The {commit.operation} {commit.instant} is committed, but its {tended.service} "
            "failed."
        ),
        why=str(tended.failure),
        now=(
            "Do not write its rows again. To get such failures in the result instead, set "
            f"{FAILS_WRITES.key} to false."
        ),
        instant=commit.instant,
        completed=commit.completed,
        service=tended.service,
    )
