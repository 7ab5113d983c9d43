"""Previews: plans that would be published now, and what is said of plans in a line."""

from collections.abc import Collection
from dataclasses import dataclass

from lakewarden.engine.plans.service import Service
from lakewarden.engine.services.choice import LeftOut
from lakewarden.engine.services.state.explained import (
    Explained,
    explain_groups,
    explain_left_out,
)
from lakewarden.engine.view.slices import SliceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A plan as a dry run would publish it."""

    service: Service
    cancellable: bool
    groups: frozenset[SliceKey]
    missing_partitions: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    input_bytes: int
    scope: str
    # What Hudi counts of it: operations of a compaction, groups of a clustering.
    operations: int = 0
    # Cancellable plans that would be cancelled to make room for it.
    pre_empts: tuple[str, ...] = ()

    def __str__(self) -> str:
        extent = extent_of(self.groups, cancellable=self.cancellable)
        room = f"; it would cancel {', '.join(self.pre_empts)}" if self.pre_empts else ""
        return f"{self.service}, not published: {extent}{room}"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions of its file groups."""
        return tuple(sorted({group.partition for group in self.groups}))

    def explain(self) -> tuple[Explained, ...]:
        """What the plan would take and skip, with reasons."""
        taken = explain_groups(self.groups, "A plan would take it.")
        return (*taken, *explain_left_out(self.left_out))


def extent_of(groups: Collection[SliceKey], *, cancellable: bool) -> str:
    """How much a plan takes, and whether it gives way."""
    places = len({group.partition for group in groups})
    kind = "cancellable" if cancellable else "not cancellable"
    return f"{_count(len(groups), 'file group')} in {_count(places, 'partition')}, {kind}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
