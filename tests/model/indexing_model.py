"""A model of an index that is built beside writers, a rollback, and builders that die or wake late.

Two writes begin and then commit under the lock, or die and are rolled back. The first of them may
not know the index (its deltacommit says nothing to a build, as Java's do by default), or may be
deaf to the metadata table as a whole. Two builders schedule, read, publish the base, catch up and
complete; each may die, and the second may resume the first one's plan or put its own in its place
while the first is only paused. The newest write may be rolled back at any time.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tests.model.exploration import Explored, explore_all


class Rule(StrEnum):
    """The rules of a build; a variant of the model does without some of them."""

    LOOK_AT_COMMIT = "a writer looks for builds when it commits, not only when it begins"
    NO_HOLES = "what was pending when the plan was made is caught up with"
    ASK_THE_PARTITION = "catching up asks whether a write has reported to this partition"
    LOOK_AGAIN = "completing looks again, under the lock that makes the index ready"
    ROLLBACK_REPORTS = "a rollback takes entries out of an index that is being built"
    BASE_AS_OF_NOW = "the base is published under the lock, against the timeline of then"
    OWN_CLAIM = "publishing and completing check that plan and claim are still the builder's"
    READERS_ASK = "an index is used if every completed write has a deltacommit"
    GROUPS_UNDER_LOCK = "the plan comes with all of its file groups, under one hold of the lock"
    WRITERS_LOG = "writers log into what is being built"


class Knowledge(StrEnum):
    """What a writer reports to the metadata table."""

    ALL = ""
    NO_BUILDS = " (unknowing)"
    NOTHING = " (deaf)"


class Build(StrEnum):
    """How far the index is."""

    NONE = "none"
    HALF = "some groups"
    GROUPS = "groups"
    BASE = "base"
    READY = "ready"


class Builder(NamedTuple):
    """One who builds; `seen` are the writes that it has read."""

    epoch: int = 0
    seen: tuple[int, ...] | None = None
    is_alive: bool = False


class Entry(NamedTuple):
    """What was logged of a write, in the groups of which plan, and whether in the right one."""

    write: int
    epoch: int
    is_placed: bool


class State(NamedTuple):
    """All there is."""

    writes: tuple[str, ...] = ("new", "new")
    knowledge: tuple[Knowledge, ...] = (Knowledge.ALL, Knowledge.ALL)
    # The plan that a write saw when it began.
    saw: tuple[int, ...] = (0, 0)
    logs: frozenset[Entry] = frozenset()
    build: Build = Build.NONE
    epoch: int = 0
    upto: int = 0
    holes: frozenset[int] = frozenset()
    base: frozenset[int] = frozenset()
    builders: tuple[Builder, ...] = (Builder(), Builder())
    has_rolled_back: bool = False
    has_died: bool = False


Step = tuple[str, State]
Rules = frozenset[Rule]
ALL_RULES: Rules = frozenset(Rule)
_WRITES = (0, 1)


def explored(rules: Rules) -> Explored:
    """Every state that can be reached, or the shortest way to an index that is untrue."""
    return explore_all(
        State(), lambda state: steps_from(state, rules), lambda s, _: wrong(s, rules)
    )


def steps_from(state: State, rules: Rules) -> Iterator[Step]:
    for number in _WRITES:
        yield from _of_write(state, number, rules)
    yield from _rollbacks(state, rules)
    for number, builder in enumerate(state.builders):
        yield from _of_builder(state, number, builder, rules)
    yield from _taking_over(state)


def wrong(state: State, rules: Rules) -> str | None:
    """What a reader would miss, or find too much of, if it used the index now."""
    if state.build is not Build.READY:
        return None
    here = {one.write for one in state.logs if one.epoch == state.epoch and one.is_placed}
    known = state.base | here
    done = [number for number in _WRITES if state.writes[number] == "done"]
    missed = [number for number in done if number not in known]
    is_refused = any(state.knowledge[number] is Knowledge.NOTHING for number in missed)
    if is_refused and Rule.READERS_ASK in rules:
        return None
    if missed:
        return f"the write {missed[0]} is completed and has no entry"
    gone = [number for number in known if state.writes[number] == "gone"]
    return f"the write {gone[0]} is gone and has an entry" if gone else None


def _of_write(state: State, number: int, rules: Rules) -> Iterator[Step]:
    if state.writes[number] == "new" and (number == 0 or state.writes[0] != "new"):
        seen = state.epoch if state.build is not Build.NONE else 0
        for knowledge in tuple(Knowledge) if number == 0 else (Knowledge.ALL,):
            yield (
                f"write {number}{knowledge} begins",
                state._replace(
                    writes=_put(state.writes, number, "begun"),
                    knowledge=_put(state.knowledge, number, knowledge),
                    saw=_put(state.saw, number, seen),
                ),
            )
    if state.writes[number] == "begun":
        yield _commit(state, number, rules)
        gone = state._replace(writes=_put(state.writes, number, "gone"))
        yield f"write {number} dies and is rolled back", gone


def _commit(state: State, number: int, rules: Rules) -> Step:
    knowledge, is_there = state.knowledge[number], state.build is not Build.NONE
    sees = is_there and (Rule.LOOK_AT_COMMIT in rules or state.saw[number] == state.epoch)
    if state.build is Build.READY:
        reports = sees and knowledge is not Knowledge.NOTHING
    else:
        reports = sees and knowledge is Knowledge.ALL and Rule.WRITERS_LOG in rules
    entry = Entry(number, state.epoch, state.build is not Build.HALF)
    logs = state.logs | {entry} if reports else state.logs
    done = state._replace(writes=_put(state.writes, number, "done"), logs=logs)
    return f"write {number} commits{' and reports' if reports else ''}", done


def _rollbacks(state: State, rules: Rules) -> Iterator[Step]:
    newest = 1 if state.writes[1] == "done" else 0
    if state.has_rolled_back or state.writes[newest] != "done":
        return
    out = state._replace(writes=_put(state.writes, newest, "gone"), has_rolled_back=True)
    if state.build is Build.READY or Rule.ROLLBACK_REPORTS in rules:
        logs = frozenset(one for one in state.logs if one.write != newest)
        out = out._replace(logs=logs, base=state.base - {newest})
    yield f"rollback of write {newest}", out


def _of_builder(state: State, number: int, it: Builder, rules: Rules) -> Iterator[Step]:
    if state.build is Build.NONE and not it.is_alive and (number == 0 or state.epoch):
        yield f"schedule ({number})", _scheduled(state, number, rules)
    if not it.is_alive:
        return
    yield from _building(state, number, it, rules)
    yield from _completing(state, number, it, rules)
    if not state.has_died:
        dead = state._replace(has_died=True, builders=_put(state.builders, number, Builder()))
        yield f"die ({number})", dead


def _scheduled(state: State, number: int, rules: Rules) -> State:
    ended = [one for one in _WRITES if state.writes[one] in ("done", "gone")]
    epoch = state.epoch + 1
    return state._replace(
        build=Build.GROUPS if Rule.GROUPS_UNDER_LOCK in rules else Build.HALF,
        epoch=epoch,
        upto=max(ended, default=-1) + 1,
        base=frozenset(),
        holes=frozenset(one for one in _WRITES if state.writes[one] == "begun"),
        builders=_put(state.builders, number, Builder(epoch, None, is_alive=True)),
    )


def _building(state: State, number: int, it: Builder, rules: Rules) -> Iterator[Step]:
    is_mine = it.epoch == state.epoch
    if state.build is Build.HALF and is_mine:
        yield f"make the other groups ({number})", state._replace(build=Build.GROUPS)
    if state.build in (Build.GROUPS, Build.BASE) and is_mine and it.seen is None:
        done = (one for one in _WRITES if one < state.upto and state.writes[one] == "done")
        builders = _put(state.builders, number, it._replace(seen=tuple(done)))
        yield f"read ({number})", state._replace(builders=builders)
    if state.build is Build.GROUPS and it.seen is not None and _may(it, state, rules):
        is_checked = Rule.BASE_AS_OF_NOW in rules
        kept = (one for one in it.seen if not is_checked or state.writes[one] == "done")
        base = state._replace(build=Build.BASE, base=frozenset(kept))
        yield f"publish the base ({number})", base


def _completing(state: State, number: int, it: Builder, rules: Rules) -> Iterator[Step]:
    may = _may(it, state, rules)
    if state.build is Build.BASE and may:
        for one in _unreported(state, rules):
            logs = state.logs | {Entry(one, state.epoch, is_placed=True)}
            yield f"catch up with write {one} ({number})", state._replace(logs=logs)
    is_another = it.epoch != state.epoch and it.seen is not None
    is_misled = state.build is Build.GROUPS and is_another and Rule.OWN_CLAIM not in rules
    if may and (state.build is Build.BASE or is_misled) and not _is_behind(state, rules):
        builders = _put(state.builders, number, it._replace(is_alive=False))
        yield f"complete ({number})", state._replace(build=Build.READY, builders=builders)


def _taking_over(state: State) -> Iterator[Step]:
    """The first builder is dead or paused, and no process can say which."""
    is_open = state.build in (Build.HALF, Build.GROUPS, Build.BASE)
    if is_open and not state.builders[1].is_alive and state.epoch < 2:
        mine = Builder(state.epoch, None, is_alive=True)
        yield "resume (1)", state._replace(builders=_put(state.builders, 1, mine))
        none = state._replace(build=Build.NONE, base=frozenset(), logs=frozenset())
        yield "supersede (1)", none


def _may(it: Builder, state: State, rules: Rules) -> bool:
    return it.epoch == state.epoch or Rule.OWN_CLAIM not in rules


def _unreported(state: State, rules: Rules) -> list[int]:
    """The writes that the builder takes for such that have not reported to the build."""
    first = min((state.upto, *state.holes)) if Rule.NO_HOLES in rules else state.upto
    here = {one.write for one in state.logs if one.epoch == state.epoch and one.is_placed}
    return [
        number
        for number in _WRITES
        if state.writes[number] == "done"
        and number >= first
        and number not in state.base | here
        and (Rule.ASK_THE_PARTITION in rules or state.knowledge[number] is Knowledge.NOTHING)
    ]


def _is_behind(state: State, rules: Rules) -> bool:
    if Rule.LOOK_AGAIN not in rules:
        return False
    unknowing = any(
        state.writes[one] == "begun" and state.knowledge[one] is not Knowledge.ALL
        for one in state.holes
    )
    return unknowing or bool(_unreported(state, rules))


def _put(values: tuple, number: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:number], value, *values[number + 1 :])
