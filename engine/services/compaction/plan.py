"""The plan of a compaction: which slices it takes, which it leaves out and why, and its bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.formats.payloads.compaction import CompactionPlan, encode_plan
from lakewarden.engine.plans.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.services.choice import Choice, LeftOut, Reason
from lakewarden.engine.services.compaction.candidates import Candidate
from lakewarden.engine.services.compaction.strategies import Strategy, filtered, left
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.view.slices import FileSlice, SliceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a plan goes by."""

    strategy: Strategy
    wish: Wish
    # The file groups of other pending plans, and which plan that is.
    held: Mapping[SliceKey, str] = field(default_factory=dict)
    new_base_bytes: int


def choose_partitions(names: Sequence[str], rules: Rules) -> Choice[str]:
    """The partitions to look into, in the strategy's order."""
    wished = rules.wish.partitions
    kept = [name for name in names if wished is None or name in wished]
    detail = "The call selects other partitions."
    unwished = tuple(filtered(name, detail) for name in names if name not in set(kept))
    choice = rules.strategy.partitions(kept)
    return Choice(choice.chosen, (*unwished, *choice.left_out))


def choose_slices(slices: Sequence[FileSlice], rules: Rules) -> Choice[Candidate]:
    """The slices to compact, in the strategy's order, within the limits of the wish."""
    candidates, left_out = [], []
    for slice_ in slices:
        refused = _refused(slice_, rules.held)
        if refused is None:
            candidates.append(Candidate(slice_, rules.new_base_bytes))
        else:
            left_out.append(refused)
    choice = rules.strategy.groups(candidates)
    limited = within_limits(choice.chosen, rules.wish)
    return Choice(limited.chosen, (*left_out, *choice.left_out, *limited.left_out))


def within_limits(candidates: Sequence[Candidate], wish: Wish) -> Choice[Candidate]:
    """As many as the limits allow; a smaller one may find room that a larger one did not."""
    chosen: list[Candidate] = []
    left_out: list[LeftOut] = []
    spent = 0
    for candidate in candidates:
        size = candidate.slice.size_bytes
        if wish.max_file_groups is not None and len(chosen) >= wish.max_file_groups:
            detail = (
                f"The plan already has {wish.max_file_groups} file groups, the most that the "
                "call allows."
            )
            left_out.append(left(candidate, Reason.OVER_LIMIT, detail))
        elif wish.max_bytes is not None and spent + size > wish.max_bytes:
            detail = f"Its {size} bytes exceed what is left of {wish.max_bytes}."
            left_out.append(left(candidate, Reason.OVER_LIMIT, detail))
        else:
            chosen.append(candidate)
            spent += size
    return Choice(tuple(chosen), tuple(left_out))


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


def _refused(slice_: FileSlice, held: Mapping[SliceKey, str]) -> LeftOut | None:
    """Why a slice is no candidate."""
    holder = held.get(slice_.key)
    if holder is not None:
        return LeftOut.of_slice(
            slice_,
            Reason.HELD_BY_PLAN,
            f"The pending plan {holder} has it.",
            held_by=holder,
            comes_back=True,
        )
    if not slice_.log_files:
        return LeftOut.of_slice(slice_, Reason.NO_LOGS, "It has no logs.")
    return None
