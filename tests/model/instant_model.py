"""A model of one instant: its ledger, its files, and all who may act upon it. There is no lock.

Each action is named after the step of the protocol that it stands for. Every process may pause
anywhere for any time, which is what looking at all interleavings means, and may die; so nothing
here rests on heartbeats, clocks or locks.

The variant "decision" keeps the end of an instant in a file of its own, beside the numbered claims,
and shows why claims and ends have to compete for one next number.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

CLAIM, COMMITTED, CANCELLED = "claim", "committed", "cancelled"


class Variant(StrEnum):
    """Where the end of an instant is kept."""

    LOG = "log"
    DECISION = "decision"


class Executor(NamedTuple):
    """One who carries the plan out; `seen` is the number of entries it has read."""

    at: str = "idle"
    attempt: int = 0
    seen: int = 0


class Canceller(NamedTuple):
    """One who cancels; a lazy cleaner does the same and tells nobody."""

    at: str = "idle"
    seen: int = 0
    is_asked: bool = True


class Aborter(NamedTuple):
    """One who rolls the cancelled instant back, with the attempts whose files it has found."""

    at: str = "idle"
    found: frozenset[int] = frozenset()


class State(NamedTuple):
    """All there is; an attempt is known by its number, and so are its file and its marker."""

    executors: tuple[Executor, ...]
    cancellers: tuple[Canceller, ...]
    aborters: tuple[Aborter, ...]
    # What kind of entry has which number; in the variant the end is the decision.
    entries: tuple[str, ...] = ()
    decision: tuple[str, int] | None = None
    is_requested: bool = False
    is_pending: bool = False
    is_published: bool = False
    files: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()
    # Where the sweep is going to look besides the markers.
    swept: frozenset[int] = frozenset()
    broken: str = ""


class Guard(StrEnum):
    """What the model can do without, to show that it is needed."""

    NEWER = "files of newer attempts are left alone"
    TAKE_OVER = "a take-over schedules a sweep"
    MARKERS = "markers that are removed tell the sweep where to look"


class Rules(NamedTuple):
    """What is taken for granted in one exploration."""

    variant: Variant = Variant.LOG
    claims_max: int = 3
    lacks: Guard | None = None


Action = tuple[str, State]


def end_of(state: State) -> tuple[str, int] | None:
    """How the instant has ended, and by which attempt."""
    if state.decision is not None:
        return state.decision
    last = state.entries[-1] if state.entries else CLAIM
    return None if last == CLAIM else (last, len(state.entries) - 1)


def claims(state: State) -> int:
    return sum(entry == CLAIM for entry in state.entries)


def actions(state: State, rules: Rules) -> Iterator[Action]:
    """Everything that may happen next."""
    for place, executor in enumerate(state.executors):
        for name, after, now in _executes(state, executor, rules):
            yield name, after._replace(executors=_sorted(state.executors, place, now))
        if executor.at not in ("idle", "dead", "done"):
            gone = _sorted(state.executors, place, Executor("dead"))
            yield "crash", state._replace(executors=gone)
    for place, canceller in enumerate(state.cancellers):
        for name, after, cancelling in _cancels(state, canceller, rules):
            yield name, after._replace(cancellers=_sorted(state.cancellers, place, cancelling))
    for place, aborter in enumerate(state.aborters):
        for name, after, aborting in _aborts(state, aborter, rules):
            yield name, after._replace(aborters=_sorted(state.aborters, place, aborting))
        if aborter.at != "idle":
            # Whoever comes next begins anew with what is there.
            yield "crash", state._replace(aborters=_sorted(state.aborters, place, Aborter()))
    yield from _anybody(state)


def _executes(state: State, me: Executor, rules: Rules) -> Iterator[tuple[str, State, Executor]]:
    match me.at:
        case "idle":
            if end_of(state) is None and state.is_pending and claims(state) < rules.claims_max:
                yield "start.reload", state, Executor("claims", 0, len(state.entries))
        case "claims":
            if len(state.entries) == me.seen:
                after = state._replace(entries=(*state.entries, CLAIM))
                yield "start.claim", after, Executor("cleans", me.seen + 1)
            else:
                yield "start.claim", state, Executor()
        case "cleans":
            after = _removed(state, _others(state.files, me.attempt, rules))
            if rules.lacks is not Guard.TAKE_OVER:
                after = after._replace(swept=frozenset(range(1, me.attempt)) | state.swept)
            yield "start.earlier-files", after, me._replace(at="marks")
        case "marks":
            after = state._replace(marked=state.marked | {me.attempt})
            yield "work.marker", after, me._replace(at="writes")
        case "writes":
            after = state._replace(files=state.files | {me.attempt})
            yield "work.file", after, me._replace(at="looks")
        case _:
            yield from _commits(state, me, rules)


def _commits(state: State, me: Executor, rules: Rules) -> Iterator[tuple[str, State, Executor]]:
    is_last = len(state.entries) == me.attempt and end_of(state) is None
    match me.at:
        case "looks":
            yield "commit.own-ledger", state, me._replace(at="checks" if is_last else "gives up")
        case "checks":
            is_there = me.attempt in state.files
            leftovers = _others(state.files & state.marked, me.attempt, rules)
            after = _removed(state, leftovers) if is_there else state
            yield "commit.outputs", after, me._replace(at="appends" if is_there else "gives up")
        case "appends":
            after = _committed(state, me.attempt, rules)
            at = "gives up" if after is None else "publishes"
            yield "commit.append", after or state, me._replace(at=at)
        case "publishes":
            yield "commit.publish", _published(state), me._replace(at="tidies")
        case "tidies":
            after = state._replace(marked=frozenset())
            yield "commit.tidy", after, Executor("done")
        case "gives up":
            yield "abort-attempt.own-files", _given_up(state, me.attempt), Executor()


def _others(files: frozenset[int], mine: int, rules: Rules) -> frozenset[int]:
    """The files of earlier attempts."""
    if rules.lacks is Guard.NEWER:
        return files - {mine}
    return frozenset(attempt for attempt in files if attempt < mine)


def _committed(state: State, attempt: int, rules: Rules) -> State | None:
    if rules.variant is Variant.DECISION:
        free = state.decision is None
        return state._replace(decision=(COMMITTED, attempt)) if free else None
    free = len(state.entries) == attempt
    return state._replace(entries=(*state.entries, COMMITTED)) if free else None


def _given_up(state: State, attempt: int) -> State:
    """An attempt that was superseded or cancelled removes its own file; else the next one does."""
    end = end_of(state)
    is_mine = end is None and claims(state) == attempt
    if is_mine or end == (COMMITTED, attempt):
        return state
    return _removed(state, frozenset({attempt}))


def _cancels(state: State, me: Canceller, rules: Rules) -> Iterator[tuple[str, State, Canceller]]:
    match me.at:
        case "idle":
            if end_of(state) is None and state.is_pending:
                yield (
                    "cancel.reload",
                    state,
                    me._replace(at="appends", seen=len(state.entries)),
                )
        case "appends":
            name = "cancel.append"
            reported = me._replace(at="acknowledged" if me.is_asked else "done", seen=0)
            if rules.variant is Variant.DECISION and state.decision is None:
                yield name, state._replace(decision=(CANCELLED, 0)), reported
            elif rules.variant is Variant.LOG and len(state.entries) == me.seen:
                yield name, state._replace(entries=(*state.entries, CANCELLED)), reported
            else:
                yield name, state, me._replace(at="idle", seen=0)


def _aborts(state: State, me: Aborter, rules: Rules) -> Iterator[tuple[str, State, Aborter]]:
    end = end_of(state)
    match me.at:
        case "idle":
            if end is not None and end[0] == CANCELLED and state.is_pending:
                # Markers say where to look; without any it is looked for everywhere.
                found = state.files & state.marked if state.marked else state.files
                name = "abort.plan"
                yield name, state, Aborter("schedules", found)
        case "schedules":
            after = state._replace(swept=state.swept | state.marked | me.found)
            yield "rollback-execution.sweep-entry", after, me._replace(at="removes")
        case "removes":
            after = _removed(state, me.found)
            yield "rollback-execution.files", after, me._replace(at="completes")
        case "completes":
            after = state._replace(is_pending=False)
            yield (
                "rollback-execution.complete",
                after,
                me._replace(at="clears"),
            )
        case "clears":
            kept = frozenset() if rules.lacks is Guard.MARKERS else state.marked
            after = state._replace(swept=state.swept | kept, marked=frozenset())
            yield "rollback-execution.tidy", after, Aborter()


def _anybody(state: State) -> Iterator[Action]:
    if not state.is_requested:
        yield "publish.requested", state._replace(is_requested=True, is_pending=True)
    end = end_of(state)
    if end is None:
        return
    if end[0] == COMMITTED and not state.is_published:
        yield "reload.roll-forward", _published(state)
    # It is due when every pause that is tolerated has ended.
    if any(executor.at not in ("idle", "dead", "done") for executor in state.executors):
        return
    where = state.swept | state.marked
    late = state.files & where
    if end[0] == COMMITTED:
        late = frozenset(attempt for attempt in late if attempt < end[1])
    if late:
        yield "sweep.files", _removed(state, late)


def _published(state: State) -> State:
    return state._replace(is_published=True, is_pending=False)


def _removed(state: State, attempts: frozenset[int]) -> State:
    """Files go, and law 1 is asked whether they may."""
    end = end_of(state)
    may_all_go = end is not None and end[0] == CANCELLED
    illegal = [a for a in attempts & state.files if not may_all_go and claims(state) <= a]
    after = state._replace(files=state.files - attempts)
    return after._replace(broken=f"law 1: files of attempt {illegal[0]}") if illegal else after


def _sorted(all_: tuple, place: int, now: object) -> tuple:  # type: ignore[type-arg]
    """Those of one kind are interchangeable, so their order tells nothing."""
    return tuple(sorted((*all_[:place], now, *all_[place + 1 :]), key=_order))


def _order(one: tuple) -> tuple:  # type: ignore[type-arg]
    return tuple(sorted(part) if isinstance(part, frozenset) else part for part in one)


def broken_promise(state: State) -> str | None:
    """What has gone wrong in a state, if anything."""
    if state.broken:
        return state.broken
    end = end_of(state)
    ends = [number for number, entry in enumerate(state.entries) if entry != CLAIM]
    if len(ends) > 1 or (ends and ends[0] != len(state.entries) - 1):
        return "two ends"
    if state.is_published and (end is None or end[0] != COMMITTED):
        return "published without a commit"
    if end is not None and end[0] == COMMITTED:
        if end[1] not in state.files:
            return "committed without its output"
        if any(canceller.at == "acknowledged" for canceller in state.cancellers):
            return "acknowledged cancel, yet committed"
    return None


def left_behind(state: State) -> str | None:
    """What is wrong where nothing can happen any more."""
    end = end_of(state)
    if end is None:
        return None
    kept = frozenset({end[1]}) if end[0] == COMMITTED else frozenset()
    if state.files - kept:
        return f"files of attempts {sorted(state.files - kept)} are left"
    if state.is_pending:
        return "it ended and is still pending"
    return None


def start_of(executors: int, cancellers: int, aborters: int, cleaners: int = 0) -> State:
    """Nothing yet, and all who may act upon it."""
    lazy = (Canceller(is_asked=False),) * cleaners
    return State(
        (Executor(),) * executors,
        tuple(sorted(((Canceller(),) * cancellers) + lazy)),
        (Aborter(),) * aborters,
    )
