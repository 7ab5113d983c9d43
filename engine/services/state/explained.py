"""Plans explained: what is in a plan, what is left out of it, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import Moment, look
from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.services.choice import LeftOut
from lakewarden.engine.services.state.shape import PlannedGroup, PlanShape, shape_of
from lakewarden.engine.timeline.active import InstantFiles


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
    """What a pending plan takes, and the partitions that it leaves to the next one."""
    moment = look(context)
    files = moment.pending(instant)
    if files is None:
        raise InvalidRequest(
            "unknown_plan",
            what=f"The timeline has no pending plan {instant}.",
            why="It may have completed, been rolled back or archived, or never been published.",
            now="Look at the table's plans for what is pending.",
            instant=instant,
        )
    missing = scope_of(moment, files).missing_partitions
    return (*_chosen(context, moment, files), *(_missing(one) for one in missing))


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


def _chosen(context: Context, moment: Moment, files: InstantFiles) -> Iterator[Explained]:
    shape = shape_of(moment, files)
    sizes = _sizes(context, moment, shape)
    for group in shape.groups:
        yield Explained(
            partition=group.partition,
            file_id=group.file_id,
            verdict=Verdict.CHOSEN,
            reason=_why(group, files),
            bytes=sum(sizes.get((group.partition, name), 0) for name in group.names),
            log_files_count=group.log_files,
            held_by_instant=files.instant.requested,
        )
    for partition in shape.emptied:
        yield Explained(
            partition=partition,
            file_id=None,
            verdict=Verdict.CHOSEN,
            reason="Nothing is left of it.",
            held_by_instant=files.instant.requested,
        )


def _why(group: PlannedGroup, files: InstantFiles) -> str:
    return (
        f"The {files.begun_as.value} {files.instant.requested} has {len(group.names)} files of it."
    )


def _sizes(context: Context, moment: Moment, shape: PlanShape) -> Mapping[tuple[str, str], int]:
    """The sizes of the files in the partitions of a plan; those that are gone have none."""
    if not shape.groups:
        return {}
    state = TableState(context.storage, moment.config, moment.timeline)
    partitions = tuple(sorted({group.partition for group in shape.groups}))
    found = state.source(use_metadata=True).files(partitions)
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
        reason="The plan leaves something of it to the next one.",
    )
