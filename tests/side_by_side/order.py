"""The order of a race: what the table held after each completed write, and which reads fit it.

A write counts from the step at which its completed instant could be seen. The order of these steps
and that of completion times are the same, or a reader who goes by times would miss a write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.kernel.errors import LakewardenError
from tests.histories.seen import plain
from tests.histories.table_model import Key, Past, Row
from tests.histories.tables import COLUMNS
from tests.side_by_side.clients import Deed
from tests.simulation.scheduler import Violation

Contents = dict[Key, Row]


class Broken(Violation):
    """A promise to users was broken; `sort` says in a few words which."""

    def __init__(self, sort: str, text: str) -> None:
        super().__init__(f"{sort}: {text}")
        self.sort = sort


@dataclass(slots=True)
class Told:
    """A deed as its client knows it, and the instants that it has started."""

    number: int
    client: str
    deed: Deed
    began: int
    ended: int | None = None
    # None for who has died, an error, or what the call has returned.
    answer: object = None
    instants: list[str] = field(default_factory=list)

    @property
    def is_acknowledged(self) -> bool:
        return self.ended is not None and not isinstance(self.answer, LakewardenError)

    @property
    def is_refused(self) -> bool:
        """It has ended without effect, as the client was told."""
        return isinstance(self.answer, LakewardenError) and self.answer.kind in (
            "conflict",
            "invalid_request",
        )

    def __str__(self) -> str:
        end = "died" if self.ended is None else f"ended {self.ended}"
        error = f" {self.answer.code}" if isinstance(self.answer, LakewardenError) else ""
        return (
            f"{self.number} {self.client} {self.deed.text}: began {self.began}, {end}{error},"
            f" {self.instants}"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A read that was answered: of the newest rows, of an earlier moment, or of a window."""

    client: str
    began: int
    ended: int
    rows: Contents
    how: str
    # The requested time that was asked for.
    as_of: str = ""
    # The completion times between which changes were asked for.
    window: tuple[str, str] | None = None
    # The keys that were asked for; None for all rows.
    ids: frozenset[str] | None = None
    # The deed whose rows were asked for by their values.
    number: int | None = None

    def asks_for(self, key: Key, row: Row) -> bool:
        """Whether a row of the newest ones is among those that were asked for."""
        if self.number is not None:
            return row["n"] == self.number
        return self.ids is None or key[1] in self.ids


@dataclass(frozen=True, slots=True)
class Completed:
    """A completed instant, and the steps from which on it could be seen, and no more."""

    requested: str
    completed: str
    step: int
    # None for what is there in the end.
    gone: int | None = None


Made = tuple[Told, Completed]


def assert_order(
    first: Past, deeds: Sequence[Told], completed: Mapping[str, Completed], reads: Sequence[Seen]
) -> None:
    """Raise unless the writes have an order in which every read is right."""
    made = _made(deeds, completed)
    steps = sorted({0, *(one.step for _, one in made), *(one.gone or 0 for _, one in made)})
    there = [[one for one in made if _is_there(one[1], step)] for step in steps]
    listed = "\n".join(f"  {instant.step}: {reported}" for reported, instant in made)
    for read in reads:
        earliest = max(place for place, step in enumerate(steps) if step <= read.began)
        latest = max(place for place, step in enumerate(steps) if step <= read.ended)
        if all(read.rows != _expected(first, some, read) for some in there[earliest : latest + 1]):
            raise Broken(
                f"{read.how.partition(' ')[0]} that no order explains",
                f"{read.client} read {read.how} from {read.began} to {read.ended}:\n"
                f"{_difference(read.rows, _expected(first, there[latest], read))}\n"
                f"Writes:\n{listed}",
            )


def _is_there(instant: Completed, step: int) -> bool:
    return instant.step <= step and (instant.gone is None or step < instant.gone)


def _expected(first: Past, made: Sequence[Made], read: Seen) -> Contents:
    """What a read shows while these writes are there."""
    since, until = read.window or ("", "")
    chosen = [
        one
        for one in made
        if (not read.as_of or one[1].requested <= read.as_of)
        and (not until or one[1].completed <= until)
    ]
    past = first.copy()
    for reported, _ in chosen:
        assert reported.deed.effect is not None
        reported.deed.effect(past)
    if not until:
        rows = plain(past.rows, COLUMNS)
        return {key: one for key, one in rows.items() if read.asks_for(key, one)}
    numbers = {reported.deed.number for reported, instant in chosen if instant.completed > since}
    written = {key: one for key, one in past.rows.items() if one.step in numbers}
    return plain(written, COLUMNS)


def _made(deeds: Sequence[Told], completed: Mapping[str, Completed]) -> list[Made]:
    """The deeds that have been on the timeline, by completion; what clients were told is so."""
    made = []
    for reported in deeds:
        if reported.deed.effect is None:
            continue
        instants = [completed[one] for one in reported.instants if one in completed]
        if len(instants) > 1:
            raise Broken("completed twice", str(reported))
        if reported.is_acknowledged and not instants and reported.instants:
            raise Broken("acknowledged, and not there", str(reported))
        if reported.is_refused and instants:
            raise Broken("refused, and there", str(reported))
        made += [(reported, one) for one in instants]
    made.sort(key=lambda one: one[1].completed)
    by_steps = sorted(made, key=lambda one: one[1].step)
    if by_steps != made:
        raise Broken("times out of order", str([str(one) for one, _ in by_steps]))
    return made


def _difference(seen: Contents, expected: Contents) -> str:
    lines = [f"  lost     {expected[key]}" for key in sorted(expected.keys() - seen.keys())]
    lines += [f"  invented {seen[key]}" for key in sorted(seen.keys() - expected.keys())]
    lines += [
        f"  wrong    {seen[key]} instead of {expected[key]}"
        for key in sorted(seen.keys() & expected.keys())
        if seen[key] != expected[key]
    ]
    return "\n".join(lines)
