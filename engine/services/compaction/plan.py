"""The plan of a compaction: which slices it takes, which it leaves out and why, and its bytes.

Choosing: the slices to compact at a moment, and all that is skipped and why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan, encode_plan
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.services.compaction.strategies import (
    Candidate,
    SelectionStrategy,
    chosen_strategy,
    filtered,
    left,
)
from lakewarden.engine.services.planning.plan_request import (
    PlanRequest,
    Reason,
    Selection,
    Skipped,
    held_groups,
    with_partition_filter,
    within,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.transaction.window.window import Window
from lakewarden.engine.write.routing.sizes import MAX_FILE_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a plan goes by."""

    strategy: SelectionStrategy
    plan_request: PlanRequest
    # The file groups of other pending plans, and which plan that is.
    held: Mapping[FileGroupId, str] = field(default_factory=dict)
    new_base_bytes: int


def select_partitions(names: Sequence[str], rules: Rules) -> Selection[str]:
    """The partitions to look into, in the strategy's order."""
    asked = rules.plan_request.partitions
    wished = None if asked is None else frozenset(asked)
    kept = [name for name in names if wished is None or name in wished]
    detail = "The call selects other partitions."
    looked_into = frozenset(kept)
    unwished = tuple(filtered(name, detail) for name in names if name not in looked_into)
    selection = rules.strategy.partitions(kept)
    return Selection(selection.chosen, (*unwished, *selection.skipped))


def select_file_slices(slices: Sequence[FileSlice], rules: Rules) -> Selection[Candidate]:
    """The slices to compact, in the strategy's order, within the limits of the request."""
    candidates, skipped = [], []
    for slice_ in slices:
        refused = _refused(slice_, rules.held)
        if refused is None:
            candidates.append(Candidate(slice_, rules.new_base_bytes))
        else:
            skipped.append(refused)
    selection = rules.strategy.groups(candidates)
    limited = within_limits(selection.chosen, rules.plan_request)
    return Selection(limited.chosen, (*skipped, *selection.skipped, *limited.skipped))


def within_limits(
    candidates: Sequence[Candidate], plan_request: PlanRequest
) -> Selection[Candidate]:
    """As many as the limits allow; a smaller one may find room that a larger one did not."""
    chosen: list[Candidate] = []
    skipped: list[Skipped] = []
    spent = 0
    for candidate in candidates:
        size = candidate.slice.size_bytes
        if plan_request.max_file_groups is not None and len(chosen) >= plan_request.max_file_groups:
            detail = (
                f"The plan already has {plan_request.max_file_groups} file groups, the most that"
                " the call allows."
            )
            skipped.append(left(candidate, Reason.OVER_LIMIT, detail))
        elif plan_request.max_bytes is not None and spent + size > plan_request.max_bytes:
            detail = f"Its {size} bytes exceed what is left of {plan_request.max_bytes}."
            skipped.append(left(candidate, Reason.OVER_LIMIT, detail))
        else:
            chosen.append(candidate)
            spent += size
    return Selection(tuple(chosen), tuple(skipped))


def plan_bytes(
    candidates: Sequence[Candidate], missing_partitions: tuple[str, ...], *, cancellable: bool
) -> bytes:
    """What the requested file holds: a plan as Java writes it."""
    plan = CompactionPlan(
        operations=tuple(one.operation for one in candidates),
        extra_metadata={CANCELLABLE_KEY: str(cancellable).lower()},
        missing_schedule_partitions=missing_partitions,
    )
    return encode_plan(plan)


def _refused(slice_: FileSlice, held: Mapping[FileGroupId, str]) -> Skipped | None:
    """Why a slice is no candidate."""
    holder = held.get(slice_.key)
    if holder is not None:
        return Skipped.of_slice(
            slice_,
            Reason.HELD_BY_PLAN,
            f"The pending plan {holder} has it.",
            held_by=holder,
            comes_back=True,
        )
    if not slice_.log_files:
        return Skipped.of_slice(slice_, Reason.NO_LOGS, "It has no logs.")
    return None


def select_slices(
    context: Context, snapshot: Snapshot, window: Window, plan_request: PlanRequest
) -> Selection[Candidate]:
    rules = Rules(
        strategy=chosen_strategy(context.settings, _today(context, snapshot)),
        plan_request=plan_request,
        held=held_groups(snapshot),
        new_base_bytes=context.settings[MAX_FILE_SIZE],
    )
    every_name = snapshot.source(use_metadata=True).partitions() if rules.strategy.ranks else None
    if window.partitions is not None:
        names = every_name or window.partitions
        rules = replace(rules, plan_request=with_partition_filter(plan_request, snapshot, names))
        partitions = within(select_partitions(names, rules), window.partitions)
        slices = _slices(snapshot, partitions.chosen)
        unread = partitions.skipped
    else:
        every = latest_file_slices(snapshot, None)
        names = every_name or _partitions(every)
        rules = replace(rules, plan_request=with_partition_filter(plan_request, snapshot, names))
        partitions = select_partitions(names, rules)
        slices = _of_partitions(every, partitions.chosen)
        # All was read, so that it is known which of the others have something to wait for.
        waiting = {slice_.partition for slice_ in every if slice_.log_files}
        unread = tuple(one for one in partitions.skipped if one.partition in waiting)
    selection = select_file_slices(slices, rules)
    return Selection(selection.chosen, (*unread, *selection.skipped))


def _slices(state: Snapshot, partitions: tuple[str, ...]) -> tuple[FileSlice, ...]:
    """The latest slices, with completed logs only, in the order of the partitions."""
    return _of_partitions(latest_file_slices(state, partitions), partitions) if partitions else ()


def _of_partitions(slices: Sequence[FileSlice], partitions: Sequence[str]) -> tuple[FileSlice, ...]:
    place = {name: number for number, name in enumerate(partitions)}
    chosen = [slice_ for slice_ in slices if slice_.partition in place]
    return tuple(sorted(chosen, key=lambda slice_: (place[slice_.partition], slice_.file_id)))


def _partitions(slices: Sequence[FileSlice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(slice_.partition for slice_ in slices))


def _today(context: Context, snapshot: Snapshot) -> date:
    return snapshot.layout.zone.wall(context.now_ms()).date()
