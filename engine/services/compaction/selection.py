"""Choosing: the slices to compact at a moment, and all that is skipped and why."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.services.compaction.candidates import Candidate
from lakewarden.engine.services.compaction.plan import Rules, select_file_slices, select_partitions
from lakewarden.engine.services.compaction.strategies import chosen_strategy
from lakewarden.engine.services.planning.plan_request import PlanRequest, with_partition_filter
from lakewarden.engine.services.planning.selection import Selection, held_groups, within
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.window.window import Window
from lakewarden.engine.write.routing.sizes import MAX_FILE_SIZE


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
