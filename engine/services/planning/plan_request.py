"""Requests: what the caller of a service asks for beyond what is set.

Choices: what a plan takes, what it leaves out, and why; refusals are values like these.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.read.merge.predicate import Filter, bind_filter
from lakewarden.engine.read.query.prune import prune_partitions
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.state.context import Service
from lakewarden.engine.transaction.window.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Limits and requests for one plan; an explicit request does not wait for triggers."""

    cancellable: bool | None = None
    # Bytes of the files that are read, and how many file groups at most.
    max_bytes: int | None = None
    max_file_groups: int | None = None
    # These partitions only; the others come back in the next plan.
    partitions: tuple[str, ...] | None = None
    # Those of which partition columns say so only; the others come back, too.
    filter: Filter | None = None
    # Wait for Hudi's triggers, as inline services do.
    honour_trigger: bool = False


def with_partition_filter(
    plan_request: PlanRequest, state: Snapshot, names: Sequence[str]
) -> PlanRequest:
    """The request for those of some partitions that it allows, by their names and by its filter."""
    allowed = _allowed(plan_request.filter, state, names)
    if allowed is None:
        return plan_request
    wished = (
        allowed if plan_request.partitions is None else allowed & frozenset(plan_request.partitions)
    )
    return replace(plan_request, filter=None, partitions=tuple(sorted(wished)))


def _allowed(
    filter_: Filter | None, state: Snapshot, names: Sequence[str]
) -> frozenset[str] | None:
    """The partitions that may hold rows that a filter keeps; None where it allows all."""
    scheme, schema = state.config.partitions, state.reader_schema()
    predicate = bind_filter(filter_, schema)
    if predicate is None:
        return None
    own = {field.name for field in scheme.fields}
    strangers = [name for name in predicate.columns if name not in own]
    if strangers:
        columns = ", ".join(sorted(own)) or "none"
        raise InvalidRequest(
            "bad_filter",
            what=f"The column {strangers[0]!r} cannot limit a plan.",
            why=f"A plan takes whole files of partitions; its partition columns: {columns}.",
            now="Filter by partition columns, or name the partitions.",
            column=strangers[0],
        )
    kept, _ = prune_partitions(names, scheme, schema, predicate)
    return frozenset(kept)


T_co = TypeVar("T_co", covariant=True)


class Reason(StrEnum):
    """Why something is not in a plan, or why there is no plan; the words are shown to users."""

    NO_LOGS = "no_logs"
    HELD_BY_PLAN = "held_by_plan"
    PARTITION_FILTERED = "partition_filtered"
    BELOW_THRESHOLD = "below_threshold"
    OVER_LIMIT = "over_limit"
    LARGE_ENOUGH = "large_enough"
    ALONE = "alone"
    PARTIAL_RECORDS = "partial_records"
    UNTOUCHED = "untouched"
    TRIGGER_NOT_REACHED = "trigger_not_reached"
    NOTHING_TO_DO = "nothing_to_do"
    WRONG_TABLE_TYPE = "wrong_table_type"
    SWITCHED_OFF = "switched_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file group that a plan leaves out, or a whole partition where no file id is given."""

    partition: str
    file_id: str | None = None
    reason: Reason
    detail: str
    # The plan that has it already.
    held_by: str | None = None
    bytes: int = 0
    log_files: int = 0
    # Whether the next plan has to look at the partition again, though nothing is written to it.
    comes_back: bool = False

    @classmethod
    def of_slice(
        cls,
        slice_: FileSlice,
        reason: Reason,
        detail: str,
        *,
        held_by: str | None = None,
        comes_back: bool = False,
    ) -> "Skipped":
        return cls(
            partition=slice_.partition,
            file_id=slice_.file_id,
            reason=reason,
            detail=detail,
            held_by=held_by,
            bytes=slice_.size_bytes,
            log_files=len(slice_.log_files),
            comes_back=comes_back,
        )


def held_back(slice_: FileSlice, plan: str) -> Skipped:
    """A slice that another pending plan has: should that come to nothing, the next one looks."""
    detail = f"The pending plan {plan} has it."
    return Skipped.of_slice(slice_, Reason.HELD_BY_PLAN, detail, held_by=plan, comes_back=True)


@dataclass(frozen=True, slots=True)
class Selection(Generic[T_co]):
    """What a planner has chosen, in the order of the plan, and all it has skipped."""

    chosen: tuple[T_co, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def missing_partitions(self) -> tuple[str, ...]:
        """The partitions that the next plan has to look at again."""
        return tuple(sorted({one.partition for one in self.skipped if one.comes_back}))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Refusal(Shown):
    """Why there is no plan. It is an answer, not an error: nothing is wrong."""

    service: str
    reason: Reason
    why: str
    skipped: tuple[Skipped, ...] = ()
    missing_partitions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"No {self.service.replace('_', ' ')}: {self.why}"

    def __bool__(self) -> bool:
        """A refusal is no plan, so that `if plan := ...schedule()` reads as it should."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan that has not been published yet."""

    # What the requested file is going to hold.
    content: bytes
    groups: frozenset[FileGroupId]
    # As they are in the content: what the next plan has to look at again.
    missing_partitions: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    input_bytes: int = 0
    # Where its partitions came from, in a sentence: since when, or why all were looked at.
    scope: str = ""
    # By what it has skipped file groups for good, without naming their partitions as missing.
    rules: str = ""


Drafted = Draft | Refusal


def untouched(service: Service, window: Window) -> Refusal | None:
    """Why there is no plan where nothing has changed since the last one."""
    if window.partitions != ():
        return None
    return Refusal(
        service=service,
        reason=Reason.UNTOUCHED,
        why=f"There is nothing new to take. {window.why}",
    )


def within(selection: Selection[str], names: Collection[str]) -> Selection[str]:
    """What a choice among all partitions says of some of them.

    A place in the order of partitions is the same whatever a window shows of them.
    """
    kept = frozenset(names)
    return Selection(
        tuple(name for name in selection.chosen if name in kept),
        tuple(one for one in selection.skipped if one.partition in kept),
    )


def held_groups(snapshot: Snapshot) -> Mapping[FileGroupId, str]:
    """The file groups in pending plans of all services, and the oldest plan that has each.

    Plans that make room for the one that is being made hold nothing.
    """
    active = snapshot.timeline.active
    held: dict[FileGroupId, str] = {}
    for instant in active.pending(PLANNED):
        if instant.requested not in snapshot.preemptible:
            for key in planned_by(active, instant).keys:
                held.setdefault(key, instant.requested)
    return held
