"""Plans explained: what is in a plan, what is left out of it, and why."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.service import Service
from lakewarden.engine.services.choice import Drafted, LeftOut, Refusal
from lakewarden.engine.services.state.shape import PlannedGroup, PlanShape, shape_in, shape_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.view.slices import SliceKey


class Verdict(StrEnum):
    """Whether something is in a plan."""

    CHOSEN = "chosen"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A file group in a plan or left out of it; a whole partition where no file id is given."""

    partition: str
    file_id: str | None
    verdict: Verdict
    reason: str
    bytes: int = 0
    log_files_count: int = 0
    held_by_instant: str | None = None


def explain_plan(context: Context, instant: str) -> tuple[Explained, ...]:
    """What a plan takes or has taken, and the partitions that it leaves to the next one."""
    moment = look(context)
    files = _plan(moment, instant)
    if files is None:
        raise InvalidRequest(
            "unknown_plan",
            what=f"The timeline has no plan {instant}.",
            why="It may be cancelled, rolled back or archived, or was never published.",
            now="Look at the table's plans for those that are pending.",
            instant=instant,
        )
    missing = scope_of(moment, files).missing_partitions
    shape, name = shape_of(moment, files), f"The {files.begun_as.value} {instant}"
    chosen = _chosen(context, moment, shape, name, held_by=instant)
    return (*chosen, *(_missing(one) for one in missing))


def explain_draft(context: Context, service: Service, drafted: Drafted) -> tuple[Explained, ...]:
    """What the next plan of a service would take, and all that it would leave out."""
    if isinstance(drafted, Refusal):
        return explain_left_out(drafted.left_out) or (_nothing(drafted),)
    shape = shape_in(service.action, drafted.content, f"the next {service}")
    chosen = _chosen(context, look(context), shape, f"The next {service}")
    return (*chosen, *explain_left_out(drafted.left_out))


def explain_groups(groups: Iterable[SliceKey], why: str) -> tuple[Explained, ...]:
    """File groups that are in a plan which is not on the timeline."""
    return tuple(
        Explained(
            partition=group.partition, file_id=group.file_id, verdict=Verdict.CHOSEN, reason=why
        )
        for group in sorted(groups)
    )


def explain_left_out(left_out: tuple[LeftOut, ...]) -> tuple[Explained, ...]:
    """What a draft or a refusal leaves out, as rows of the same kind."""
    return tuple(
        Explained(
            partition=one.partition,
            file_id=one.file_id,
            verdict=Verdict.LEFT_OUT,
            reason=f"{one.reason}: {one.detail}",
            bytes=one.bytes,
            log_files_count=one.log_files,
            held_by_instant=one.held_by,
        )
        for one in left_out
    )


def _plan(moment: Snapshot, instant: str) -> InstantFiles | None:
    """The files of a plan, pending or completed."""
    files = moment.pending(instant)
    write = moment.completed_write(instant)
    if files is None and write is not None:
        files = moment.timeline.active.files_of(write)
    return files if files is not None and files.requested is not None else None


def _chosen(
    context: Context, moment: Snapshot, shape: PlanShape, name: str, held_by: str | None = None
) -> Iterator[Explained]:
    sizes = _sizes(context, moment, shape)
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
        verdict=Verdict.LEFT_OUT,
        reason=f"{refusal.reason}: {refusal.why}",
    )


def _why(group: PlannedGroup, name: str) -> str:
    return f"{name} takes {len(group.names)} of its files, {group.log_files} of them logs."


def _sizes(context: Context, moment: Snapshot, shape: PlanShape) -> Mapping[tuple[str, str], int]:
    """The sizes of the files in the partitions of a plan; those that are gone have none."""
    if not shape.groups:
        return {}
    partitions = tuple(sorted({group.partition for group in shape.groups}))
    found = moment.source(use_metadata=True).files(partitions)
    return {
        (partition, file.name): file.size_bytes
        for partition, files in found.items()
        for file in files
    }


def _missing(partition: str) -> Explained:
    return Explained(
        partition=partition,
        file_id=None,
        verdict=Verdict.LEFT_OUT,
        reason="The plan leaves a part of it to the next plan.",
    )
