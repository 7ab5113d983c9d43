"""What a log compaction takes: file groups whose logs have many blocks that count.

The rule is Hudi's, and it slides: of logs that were compacted before only what they were compacted
into counts, so that a file group comes up again after as many new blocks, and each time all of its
logs are put together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.planned_slices import operation_of
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import LOG_COMPACTION, CompactionPlan
from lakewarden.engine.services.planning.plan_request import Reason, Selection, Skipped
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY


@dataclass(frozen=True, slots=True)
class Counted:
    """A slice, and what its logs hold."""

    slice: FileSlice
    # Data and delete blocks that count, and the instants that they are of.
    blocks: int
    instants: int
    has_partial_records: bool = False

    @property
    def log_bytes(self) -> int:
        return log_bytes(self.slice)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCompactionLimits:
    """How many blocks a file group must have, and how much one plan may take."""

    blocks_min: int
    bytes_max: int | None = None
    groups_max: int | None = None


def log_bytes(slice_: FileSlice) -> int:
    """What compacting the logs of a slice reads."""
    return sum(log.size_bytes for log in slice_.log_files)


def sift(
    slices: Sequence[FileSlice],
    held: Mapping[FileGroupId, str],
    partitions: Collection[str] | None = None,
) -> Selection[FileSlice]:
    """The slices whose blocks have to be counted, which means to look into files."""
    chosen, skipped = [], []
    for slice_ in slices:
        plan = held.get(slice_.key)
        if not slice_.log_files:
            why = "It has no logs."
            skipped.append(Skipped.of_slice(slice_, Reason.NO_LOGS, why))
        elif partitions is not None and slice_.partition not in partitions:
            why = "The call selects other partitions."
            skipped.append(
                Skipped.of_slice(slice_, Reason.PARTITION_FILTERED, why, comes_back=True)
            )
        elif plan is not None:
            why = f"The pending plan {plan} has it."
            skipped.append(
                Skipped.of_slice(slice_, Reason.HELD_BY_PLAN, why, held_by=plan, comes_back=True)
            )
        else:
            chosen.append(slice_)
    return Selection(tuple(chosen), tuple(skipped))


def select_groups(counted: Sequence[Counted], limits: LogCompactionLimits) -> Selection[FileSlice]:
    """The slices to compact, in their order; where limits leave some out, those with most blocks.

    A slice with partial records is skipped: without the base file they cannot be folded.
    """
    fit, skipped = _fitting(counted, limits.blocks_min)
    chosen, bytes_left, groups_left = [], limits.bytes_max, limits.groups_max
    for one in sorted(fit, key=lambda one: (-one.blocks, one.slice.key)):
        if groups_left == 0 or (bytes_left is not None and one.log_bytes > bytes_left):
            why = f"The plan is full; its {one.blocks} blocks have {one.log_bytes} bytes."
            skipped.append(Skipped.of_slice(one.slice, Reason.OVER_LIMIT, why, comes_back=True))
            continue
        chosen.append(one.slice)
        bytes_left = None if bytes_left is None else bytes_left - one.log_bytes
        groups_left = None if groups_left is None else groups_left - 1
    return Selection(tuple(sorted(chosen, key=lambda slice_: slice_.key)), tuple(skipped))


def plan_of(
    slices: Sequence[FileSlice], *, is_cancellable: bool, missing_partitions: tuple[str, ...]
) -> CompactionPlan:
    """The plan as it is published."""
    return CompactionPlan(
        operations=tuple(operation_of(slice_) for slice_ in slices),
        extra_metadata={CANCELLABLE_KEY: str(is_cancellable).lower()},
        strategy=LOG_COMPACTION,
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=missing_partitions,
    )


def _fitting(counted: Sequence[Counted], blocks_min: int) -> tuple[list[Counted], list[Skipped]]:
    fit, skipped = [], []
    for one in counted:
        if one.has_partial_records:
            why = "Its logs hold records of some columns only, which need the base file."
            skipped.append(Skipped.of_slice(one.slice, Reason.PARTIAL_RECORDS, why))
        elif one.blocks < blocks_min or one.instants < 2:
            # Blocks of one instant are what compacting them would give once more.
            why = f"It has {one.blocks} blocks of {one.instants} instants, and needs {blocks_min}."
            skipped.append(Skipped.of_slice(one.slice, Reason.BELOW_THRESHOLD, why))
        else:
            fit.append(one)
    return fit, skipped
