"""Choosing: the slices to compact at a moment, and all that is left out and why."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from lakewarden.engine.index.current_slices import current_slices
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.window import Window
from lakewarden.engine.services.choice import Choice
from lakewarden.engine.services.compaction.candidates import Candidate
from lakewarden.engine.services.compaction.plan import Rules, choose_partitions, choose_slices
from lakewarden.engine.services.compaction.strategies import chosen_strategy
from lakewarden.engine.services.held import held_groups
from lakewarden.engine.services.in_window import within
from lakewarden.engine.services.narrowing import narrowed
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.view.slices import FileSlice
from lakewarden.engine.write.sizes import MAX_FILE_SIZE


def choose(context: Context, moment: Snapshot, window: Window, wish: Wish) -> Choice[Candidate]:
    rules = Rules(
        strategy=chosen_strategy(context.settings, _today(context, moment)),
        wish=wish,
        held=held_groups(moment),
        new_base_bytes=context.settings[MAX_FILE_SIZE],
    )
    every_name = moment.source(use_metadata=True).partitions() if rules.strategy.ranks else None
    if window.partitions is not None:
        names = every_name or window.partitions
        rules = replace(rules, wish=narrowed(wish, moment, names))
        partitions = within(choose_partitions(names, rules), window.partitions)
        slices = _slices(moment, partitions.chosen)
        unread = partitions.left_out
    else:
        every = current_slices(moment, None)
        names = every_name or _partitions(every)
        rules = replace(rules, wish=narrowed(wish, moment, names))
        partitions = choose_partitions(names, rules)
        slices = _of_partitions(every, partitions.chosen)
        # All was read, so that it is known which of the others have something to wait for.
        waiting = {slice_.partition for slice_ in every if slice_.log_files}
        unread = tuple(one for one in partitions.left_out if one.partition in waiting)
    choice = choose_slices(slices, rules)
    return Choice(choice.chosen, (*unread, *choice.left_out))


def _slices(state: Snapshot, partitions: tuple[str, ...]) -> tuple[FileSlice, ...]:
    """The latest slices, with completed logs only, in the order of the partitions."""
    return _of_partitions(current_slices(state, partitions), partitions) if partitions else ()


def _of_partitions(slices: Sequence[FileSlice], partitions: Sequence[str]) -> tuple[FileSlice, ...]:
    place = {name: number for number, name in enumerate(partitions)}
    chosen = [slice_ for slice_ in slices if slice_.partition in place]
    return tuple(sorted(chosen, key=lambda slice_: (place[slice_.partition], slice_.file_id)))


def _partitions(slices: Sequence[FileSlice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(slice_.partition for slice_ in slices))


def _today(context: Context, moment: Snapshot) -> date:
    return moment.layout.zone.wall(context.now_ms()).date()
