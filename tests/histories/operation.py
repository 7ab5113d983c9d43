"""Operations: what may happen to a table in a history, and the calls that are drawn from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from lakewarden import Table
from lakewarden.engine.write.request import Commit
from tests.histories.table_model import Past, Rows


def _nothing(past: Past) -> None:
    pass


def _learns_nothing(past: Past, answer: object) -> None:
    pass


def _as_expected(answer: object) -> Iterator[str]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call with its arguments: what it does to a table, and to the model."""

    text: str
    act: Callable[[Table], object]
    effect: Callable[[Past], None] = _nothing
    # What only the answer says, and that in which the answer is wrong.
    learns: Callable[[Past, object], None] = _learns_nothing
    differs: Callable[[object], Iterator[str]] = _as_expected
    is_write: bool = False
    # How long nothing happens before.
    waits_ms: int = 0
    # Whoever dies in it has to call again: nothing else can be done until then.
    is_repeated: bool = False
    # Half of it is what no process leaves, so that none dies in it.
    is_whole: bool = False
    # What readers may meet meanwhile, besides what was before and is afterwards.
    between: tuple[Rows, ...] = ()


class Operation(Protocol):
    """A kind of call."""

    name: str
    # How often it is drawn, beside others.
    weight: int

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        """A call that makes sense now, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class Counts:
    """What a commit should say of rows."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    # Whoever writes logs does not always know which keys are new, or were deleted.
    by_sum: bool = False

    @classmethod
    def of(cls, past: Past, inserted: int, updated: int, deleted: int | None = 0) -> "Counts":
        """What a commit to this table should say."""
        return cls(inserted, updated, deleted, by_sum=past.kind.is_mor)

    def __call__(self, answer: object) -> Iterator[str]:
        assert isinstance(answer, Commit), answer
        if self.by_sum and self.inserted is not None and self.updated is not None:
            wanted, got = self.inserted + self.updated, answer.rows_inserted + answer.rows_updated
            if wanted != got:
                yield f"rows_inserted and rows_updated are {got} instead of {wanted}"
            return
        for name in ("inserted", "updated", "deleted"):
            expected, said = getattr(self, name), getattr(answer, f"rows_{name}")
            if expected is not None and expected != said:
                yield f"rows_{name} is {said} instead of {expected}"
