"""Pending plans of all services, as values, and what each takes and skips and why."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.shown import Listed
from lakewarden.engine.services.inspection.state.blockers import Blocker, find_blockers
from lakewarden.engine.services.inspection.state.shape import (
    PlannedGroup,
    PlanShape,
    shape_in,
    shape_of,
)
from lakewarden.engine.services.planning.plan_request import Drafted, Refusal, Skipped
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    Service,
    load_for_writing,
)
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    began_at_ms,
    expires_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION

_NO_PLANS = INGESTION | {Action.SAVEPOINT}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A plan that has not ended: what it is about, and who works on it."""

    instant: str
    service: str
    state: InstantState
    # Whether it may be cancelled without force.
    cancellable: bool
    partitions_count: int
    file_groups_count: int
    # As its planner reckoned; None where it does not say.
    input_bytes: int | None
    attempt: int | None
    owner: str | None
    host: str | None
    step: str | None
    done_ratio: float | None
    requested_at_ms: int | None
    age_seconds: float | None
    started_at_ms: int | None
    last_heartbeat_at_ms: int | None
    expires_at_ms: int | None
    missing_partitions_count: int
    # The services that it holds back.
    blocks: tuple[str, ...]


def plans(context: Context) -> tuple[PendingPlan, ...]:
    """The pending plans, oldest first; nothing is changed, and a table at rest costs one look."""
    return retrying_view(partial(looked, context), partial(_plans, context))


def _plans(context: Context, snapshot: Snapshot) -> tuple[PendingPlan, ...]:
    pending = [one for one in pending_instants(context, snapshot) if one.action not in _NO_PLANS]
    blockers = find_blockers(context, snapshot) if pending else ()
    return tuple(_plan(context, snapshot, one, blockers) for one in pending)


def _plan(
    context: Context, snapshot: Snapshot, pending: Pending, blockers: tuple[Blocker, ...]
) -> PendingPlan:
    scope, shape = scope_of(snapshot, pending.files), shape_of(snapshot, pending.files)
    claim, heartbeat = pending.ledger.last_claim, pending.heartbeat
    requested_ms = began_at_ms(snapshot, pending.requested)
    return PendingPlan(
        instant=pending.requested,
        service=service_name(pending.action),
        state=pending.state,
        cancellable=pending.action in TABLE_SERVICES and scope.is_cancellable,
        partitions_count=len(shape.partitions),
        file_groups_count=len(shape.groups),
        input_bytes=shape.input_bytes,
        attempt=None if claim is None else claim.attempt,
        owner=None if claim is None else claim.owner,
        host=None if claim is None else claim.host,
        step=heartbeat.step if heartbeat and heartbeat.step else None,
        done_ratio=heartbeat.done / heartbeat.total if heartbeat and heartbeat.total else None,
        requested_at_ms=requested_ms,
        age_seconds=age_seconds(context, requested_ms),
        started_at_ms=None if claim is None else claim.started_at_ms,
        last_heartbeat_at_ms=None if heartbeat is None else heartbeat.at_ms,
        expires_at_ms=None if heartbeat is None else expires_at_ms(context, heartbeat),
        missing_partitions_count=len(scope.missing_partitions),
        blocks=tuple(one.blocked_service for one in blockers if one.instant == pending.requested),
    )


class Verdict(StrEnum):
    """Whether something is in a plan."""

    CHOSEN = "chosen"
    SKIPPED = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A file group in a plan or skipped in it; a whole partition where no file id is given."""

    partition: str
    file_id: str | None
    verdict: Verdict
    reason: str
    bytes: int = 0
    log_files_count: int = 0
    held_by_instant: str | None = None


def explain_plan(context: Context, instant: str) -> Listed[Explained]:
    """What a plan takes or has taken, and the partitions that it leaves to the next one."""
    snapshot = load_for_writing(context)
    files = _explained(snapshot, instant)
    if files is None:
        raise InvalidRequest(
            "unknown_plan",
            what=f"The timeline has no plan {instant}.",
            why="It may be cancelled, rolled back or archived, or was never published.",
            now="Look at the table's plans for those that are pending.",
            instant=instant,
        )
    missing = scope_of(snapshot, files).missing_partitions
    shape, name = shape_of(snapshot, files), f"The {files.started_as.value} {instant}"
    chosen = _chosen(context, snapshot, shape, name, held_by=instant)
    return Listed((*chosen, *(_missing(one) for one in missing)))


def explain_draft(context: Context, service: Service, drafted: Drafted) -> Listed[Explained]:
    """What the next plan of a service would take, and all that it would leave out."""
    if isinstance(drafted, Refusal):
        return explain_skipped(drafted.skipped) or Listed((_nothing(drafted),))
    shape = shape_in(service.action, drafted.content, f"the next {service}")
    chosen = _chosen(context, load_for_writing(context), shape, f"The next {service}")
    return Listed((*chosen, *explain_skipped(drafted.skipped)))


def explain_groups(groups: Iterable[FileGroupId], why: str) -> Listed[Explained]:
    """File groups that are in a plan which is not on the timeline."""
    return Listed(
        Explained(
            partition=group.partition, file_id=group.file_id, verdict=Verdict.CHOSEN, reason=why
        )
        for group in sorted(groups)
    )


def explain_skipped(skipped: tuple[Skipped, ...]) -> Listed[Explained]:
    """What a draft or a refusal leaves out, as rows of the same kind."""
    return Listed(
        Explained(
            partition=one.partition,
            file_id=one.file_id,
            verdict=Verdict.SKIPPED,
            reason=f"{one.reason}: {one.detail}",
            bytes=one.bytes,
            log_files_count=one.log_files,
            held_by_instant=one.held_by,
        )
        for one in skipped
    )


def _explained(snapshot: Snapshot, instant: str) -> InstantFiles | None:
    """The files of a plan, pending or completed."""
    files = snapshot.pending(instant)
    write = snapshot.completed_write(instant)
    if files is None and write is not None:
        files = snapshot.timeline.active.files_of(write)
    return files if files is not None and files.requested is not None else None


def _chosen(
    context: Context, snapshot: Snapshot, shape: PlanShape, name: str, held_by: str | None = None
) -> Iterator[Explained]:
    sizes = _sizes(context, snapshot, shape)
    for group in shape.groups:
        yield Explained(
            partition=group.partition,
            file_id=group.file_id,
            verdict=Verdict.CHOSEN,
            reason=_why(group, name),
            bytes=sum(sizes.get((group.partition, file), 0) for file in group.names),
            log_files_count=group.log_files,
            held_by_instant=held_by,
        )
    for partition in shape.emptied:
        yield Explained(
            partition=partition,
            file_id=None,
            verdict=Verdict.CHOSEN,
            reason="No file of it is left.",
            held_by_instant=held_by,
        )


def _nothing(refusal: Refusal) -> Explained:
    return Explained(
        partition="",
        file_id=None,
        verdict=Verdict.SKIPPED,
        reason=f"{refusal.reason}: {refusal.why}",
    )


def _why(group: PlannedGroup, name: str) -> str:
    return f"{name} takes {len(group.names)} of its files, {group.log_files} of them logs."


def _sizes(context: Context, snapshot: Snapshot, shape: PlanShape) -> Mapping[tuple[str, str], int]:
    """The sizes of the files in the partitions of a plan; those that are gone have none."""
    if not shape.groups:
        return {}
    partitions = tuple(sorted({group.partition for group in shape.groups}))
    found = snapshot.source(use_metadata=True).files(partitions)
    return {
        (partition, file.name): file.size_bytes
        for partition, files in found.items()
        for file in files
    }


def _missing(partition: str) -> Explained:
    return Explained(
        partition=partition,
        file_id=None,
        verdict=Verdict.SKIPPED,
        reason="The plan leaves a part of it to the next plan.",
    )
