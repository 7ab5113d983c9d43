"""Previews: plans that would be published now, and what is said of plans in a line."""

from collections.abc import Collection
from dataclasses import dataclass

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.shown import Listed, Shown
from lakewarden.engine.services.inspection.state.plans import (
    Explained,
    explain_groups,
    explain_skipped,
)
from lakewarden.engine.services.planning.plan_request import Skipped
from lakewarden.engine.transaction.state.context import Service


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Preview(Shown):
    """A plan as a dry run would publish it."""

    service: Service
    cancellable: bool
    groups: frozenset[FileGroupId]
    missing_partitions: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    input_bytes: int
    scope: str
    # What Hudi counts of it: operations of a compaction, groups of a clustering.
    operations: int = 0
    # Cancellable plans that would be cancelled to make room for it.
    preempts: tuple[str, ...] = ()

    def __str__(self) -> str:
        extent = extent_of(self.groups, cancellable=self.cancellable)
        room = f"; it would cancel {', '.join(self.preempts)}" if self.preempts else ""
        return f"{self.service}, not published: {extent}{room}"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions of its file groups."""
        return tuple(sorted({group.partition for group in self.groups}))

    def explain(self) -> Listed[Explained]:
        """What the plan would take and skip, with reasons."""
        taken = explain_groups(self.groups, "A plan would take it.")
        return Listed((*taken, *explain_skipped(self.skipped)))


def extent_of(groups: Collection[FileGroupId], *, cancellable: bool) -> str:
    """How much a plan takes, and whether it gives way."""
    places = len({group.partition for group in groups})
    kind = "cancellable" if cancellable else "not cancellable"
    return f"{_count(len(groups), 'file group')} in {_count(places, 'partition')}, {kind}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
