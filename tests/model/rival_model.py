"""A model of writers that want each other's file groups, with early conflict detection.

A writer plans its file groups, announces them, looks, makes its files one after the other, looking
before each, and commits under the table lock. Older writers have smaller numbers; all began before
any had committed. A commit fails if another one has completed on a common file group, so nothing is
ever lost: the model shows who gives way, how much is written in vain, and that somebody survives.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Rule(StrEnum):
    """How a writer looks, and which of two stays."""

    OFF = "off"
    """It does not look."""
    OLDER = "older"
    """It announces, then looks: the older one stays."""
    FIRST = "first"
    """It looks and announces in one step, under the lock: the first one stays."""


class Lack(StrEnum):
    """What a variant leaves out."""

    NOTHING = "nothing"
    LOCK = "the lock around look and announcement"
    CANCELLED = "taking the cancelled for gone"
    PULSE = "asking whether a rival is alive"
    COMMITS = "looking for what has completed"
    WATCH = "looking again while files are made"


class Writer(NamedTuple):
    """One writer; `made` of its files are there, `vain` of them since it was bound to lose."""

    at: str = "planned"
    made: int = 0
    vain: int = 0


class State(NamedTuple):
    """All there is; `announced` are the writers whose announcement is to be seen, in that order."""

    writers: tuple[Writer, ...]
    announced: tuple[int, ...] = ()
    committed: frozenset[int] = frozenset()
    # Died, and still looks alive.
    corpses: frozenset[int] = frozenset()
    # One has given way to another that had ended.
    is_misled: bool = False


class Race(NamedTuple):
    """Plans and rules of the writers, and what is left out."""

    plans: tuple[str, ...]
    rules: tuple[Rule, ...]
    lack: Lack = Lack.NOTHING
    has_crashes: bool = False


ENDS = frozenset({"early", "late", "done", "died"})
# It has ended in the ledger, and has not tidied up.
GIVING_WAY = "giving way"


def start_of(race: Race) -> State:
    return State((Writer(),) * len(race.plans))


def steps_from(state: State, race: Race) -> Iterator[tuple[str, State]]:
    for number, writer in enumerate(state.writers):
        for name, after in _steps_of(state, race, number, writer):
            yield f"{name} ({number})", after
    for number in sorted(state.corpses):
        yield f"expire ({number})", state._replace(corpses=state.corpses - {number})


def broken(state: State, steps: list[tuple[str, State]]) -> str | None:
    """A promise that holds in every state, or at the end."""
    if state.is_misled:
        return "one gave way to another that had ended"
    if steps:
        return None
    if any(one.at not in ENDS for one in state.writers):
        return "somebody can't go on"
    if not state.committed and all(one.at != "died" for one in state.writers):
        return "nobody survives"
    return None


def _with(state: State, number: int, writer: Writer) -> State:
    writers = (*state.writers[:number], writer, *state.writers[number + 1 :])
    return state._replace(writers=writers)


def _steps_of(state: State, race: Race, number: int, it: Writer) -> Iterator[tuple[str, State]]:
    if it.at in ENDS:
        return
    if it.at == GIVING_WAY:
        gone = tuple(one for one in state.announced if one != number)
        yield "tidy", _with(state._replace(announced=gone), number, it._replace(at="early"))
        return
    if it.at == "planned":
        yield from _begins(state, race, number, it)
    elif it.at == "looking":
        yield from _looks(state, race, number, it, "writing")
    elif it.at == "announcing":
        yield "announce", _announced(state, number, it, "writing")
    elif it.at == "watching":
        yield from _looks(state, race, number, it, "writing")
    elif it.at == "writing":
        yield _makes_a_file(state, race, number, it)
    else:
        yield _commits(state, race, number, it)
    if race.has_crashes:
        corpses = state.corpses | {number}
        yield "die", _with(state._replace(corpses=corpses), number, it._replace(at="died"))


def _begins(state: State, race: Race, number: int, it: Writer) -> Iterator[tuple[str, State]]:
    rule = race.rules[number]
    if rule is Rule.OFF:
        yield "announce", _announced(state, number, it, "writing")
    elif rule is Rule.FIRST and race.lack is Lack.LOCK:
        # The announcement is a step of its own.
        yield from _looks(state, race, number, it, "announcing")
    elif rule is Rule.FIRST:
        for name, after in _looks(state, race, number, it, "writing"):
            has_passed = after.writers[number].at == "writing"
            yield name, _announced(after, number, it, "writing") if has_passed else after
    else:
        yield "announce", _announced(state, number, it, "looking")


def _announced(state: State, number: int, it: Writer, then: str) -> State:
    after = state._replace(announced=(*state.announced, number))
    return _with(after, number, it._replace(at=then))


def _looks(
    state: State, race: Race, number: int, it: Writer, then: str
) -> Iterator[tuple[str, State]]:
    is_defeated = race.lack is not Lack.COMMITS and _is_defeated(state, race, number)
    rivals = [one for one in state.announced if _stays(state, race, number, one)]
    if not rivals and not is_defeated:
        yield "look", _with(state, number, it._replace(at=then))
        return
    is_misled = not is_defeated and all(_has_ended(state, one) for one in rivals)
    after = state._replace(is_misled=state.is_misled or is_misled)
    at = GIVING_WAY if number in state.announced else "early"
    yield "give way", _with(after, number, it._replace(at=at))


def _has_ended(state: State, number: int) -> bool:
    at = state.writers[number].at
    return at in (GIVING_WAY, "early", "late") or (at == "died" and number not in state.corpses)


def _stays(state: State, race: Race, mine: int, other: int) -> bool:
    """Whether another one that has announced itself stays, so that this one gives way."""
    if other == mine or not set(race.plans[mine]) & set(race.plans[other]):
        return False
    at = state.writers[other].at
    if at == GIVING_WAY and race.lack is not Lack.CANCELLED:
        return False
    if at == "died" and other not in state.corpses and race.lack is not Lack.PULSE:
        return False
    if race.rules[mine] is Rule.FIRST and mine not in state.announced:
        return True
    if race.rules[mine] is Rule.FIRST and race.rules[other] is Rule.FIRST:
        return False
    return other < mine


def _is_defeated(state: State, race: Race, number: int) -> bool:
    mine = set(race.plans[number])
    return any(mine & set(race.plans[one]) for one in state.committed)


def _makes_a_file(state: State, race: Race, number: int, it: Writer) -> tuple[str, State]:
    has_rule = race.rules[number] is not Rule.OFF
    is_vain = _is_defeated(state, race, number)
    is_vain |= any(_stays(state, race, number, one) for one in state.announced)
    is_last = it.made + 1 == len(race.plans[number])
    looks = has_rule and race.lack is not Lack.WATCH
    then = "committing" if is_last else "watching" if looks else "writing"
    after = Writer(then, it.made + 1, it.vain + (is_vain and has_rule))
    return "make a file", _with(state, number, after)


def _commits(state: State, race: Race, number: int, it: Writer) -> tuple[str, State]:
    if _is_defeated(state, race, number):
        gone = tuple(one for one in state.announced if one != number)
        return "fail", _with(state._replace(announced=gone), number, it._replace(at="late"))
    gone = tuple(one for one in state.announced if one != number)
    after = state._replace(committed=state.committed | {number}, announced=gone)
    return "commit", _with(after, number, it._replace(at="done"))
