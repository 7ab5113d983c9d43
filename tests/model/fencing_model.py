"""A model of several committers, and of one who takes back what they build upon. There is no lock.

Each committer has chosen its file groups from a table where nothing but the write W is completed,
and all of them want the same file group. A committer that sees another one's commit, or that W is
being taken back, gives way. Each action stands for one call of the storage.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Lack(StrEnum):
    """What a variant leaves out, each of which breaks the promise."""

    NOTHING = "nothing"
    FENCE = "the fence"
    ORDER = "the own ledger before the timeline"
    LAST_LOOK = "the last look of who takes back"


class Committer(NamedTuple):
    """One who commits; `own` is the length of its ledger as read, `todo` whom it has to fence."""

    at: str = "working"
    own: int = 0
    todo: tuple[int, ...] = ()
    # The length of the next rival's ledger as it was read.
    rival: int = -1
    # The first of the two reads was made.
    is_half: bool = False


class TakeBack(NamedTuple):
    """One who takes W back on request."""

    at: str = "idle"
    todo: tuple[int, ...] = ()
    rival: int = -1


class State(NamedTuple):
    """All there is: the lengths of ledgers, who has committed, and what has become of W."""

    committers: tuple[Committer, ...]
    taker: TakeBack
    lengths: tuple[int, ...]
    committed: frozenset[int] = frozenset()
    is_announced: bool = False
    is_taken_back: bool = False


LEDGER_MAX = 5


def start_of(committers: int, *, takes_back: bool) -> State:
    taker = TakeBack() if takes_back else TakeBack("done")
    return State((Committer(),) * committers, taker, (1,) * committers)


def steps_from(state: State, lack: Lack = Lack.NOTHING) -> Iterator[tuple[str, State]]:
    for number, committer in enumerate(state.committers):
        for name, after in _steps_of(state, number, committer, lack):
            yield f"{name} ({number})", after
    yield from _taking_back(state, lack)


def broken(state: State) -> str | None:
    if len(state.committed) > 1:
        return "two commits, neither of which has seen the other one"
    if state.is_taken_back and state.committed:
        return "a commit upon rows that were taken back"
    return None


def _with(state: State, number: int, committer: Committer) -> State:
    committers = (*state.committers[:number], committer, *state.committers[number + 1 :])
    return state._replace(committers=committers)


def _steps_of(state: State, number: int, it: Committer, lack: Lack) -> Iterator[tuple[str, State]]:
    if it.at == "working":
        reads = ("timeline", "ledger") if lack is Lack.ORDER else ("ledger", "timeline")
        yield from _read(state, number, it, reads[1] if it.is_half else reads[0], lack)
    elif it.at == "fencing":
        yield from _fence(state, number, it)
    elif it.at == "commit":
        yield from _commit(state, number, it)


def _read(
    state: State, number: int, it: Committer, what: str, lack: Lack
) -> Iterator[tuple[str, State]]:
    if what == "ledger":
        after = it._replace(own=state.lengths[number])
    elif state.committed or state.is_announced or state.is_taken_back:
        yield "give way", _with(state, number, Committer("gone"))
        return
    else:
        rivals = [n for n, one in enumerate(state.committers) if n != number and one.at != "gone"]
        after = it._replace(todo=() if lack is Lack.FENCE else tuple(rivals))
    if it.is_half:
        after = after._replace(is_half=False, at="fencing" if after.todo else "commit")
    else:
        after = after._replace(is_half=True)
    yield f"read {what}", _with(state, number, after)


def _fence(state: State, number: int, it: Committer) -> Iterator[tuple[str, State]]:
    rival, *rest = it.todo
    if it.rival < 0:
        yield "read rival", _with(state, number, it._replace(rival=state.lengths[rival]))
    elif rival in state.committed:
        yield "rival committed", _with(state, number, Committer())
    elif state.lengths[rival] != it.rival:
        yield "read rival again", _with(state, number, it._replace(rival=-1))
    else:
        longer = state.lengths[rival] + 1
        if longer > LEDGER_MAX:
            return
        lengths = (*state.lengths[:rival], longer, *state.lengths[rival + 1 :])
        done = it._replace(rival=-1, todo=tuple(rest), at="fencing" if rest else "commit")
        yield "fence", _with(state._replace(lengths=lengths), number, done)


def _commit(state: State, number: int, it: Committer) -> Iterator[tuple[str, State]]:
    if state.lengths[number] != it.own:
        yield "fenced", _with(state, number, Committer())
    else:
        after = state._replace(committed=state.committed | {number})
        yield "commit", _with(after, number, Committer("done"))


def _taking_back(state: State, lack: Lack) -> Iterator[tuple[str, State]]:
    taker = state.taker
    everybody = tuple(range(len(state.committers)))
    if taker.at == "idle":
        after = state._replace(is_announced=True, taker=TakeBack("fencing", everybody))
        yield "announce", state._replace(taker=TakeBack("done")) if state.committed else after
    elif taker.at == "fencing" and not taker.todo:
        after = state._replace(taker=TakeBack("done"))
        if state.committed and lack is not Lack.LAST_LOOK:
            yield "give up", after._replace(is_announced=False)
        else:
            yield "take back", after._replace(is_taken_back=True)
    elif taker.at == "fencing":
        rival, *rest = taker.todo
        lengths = (*state.lengths[:rival], state.lengths[rival] + 1, *state.lengths[rival + 1 :])
        if lengths[rival] <= LEDGER_MAX:
            yield (
                "fence by taker",
                state._replace(lengths=lengths, taker=TakeBack("fencing", tuple(rest))),
            )
