"""Travels: savepoints, and what takes a table back to an earlier moment."""

from dataclasses import dataclass
from random import Random

from lakewarden import Table
from lakewarden.engine.services.savepoint.run import Savepoint as Made
from tests.histories.operation import Call
from tests.histories.seen import Difference
from tests.histories.table_model import Past


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str = "savepoint"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.moments:
            return None

        def learns(past: Past, answer: object) -> None:
            assert isinstance(answer, Made)
            past.savepoints |= {answer.instant}

        return Call(
            text="savepoint", act=lambda table: table.savepoint(), learns=learns, is_repeated=True
        )


@dataclass(frozen=True, slots=True)
class DeleteSavepoint:
    name: str = "delete savepoint"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.savepoints:
            return self._of_a_new_one(past)
        instant = chance.choice(sorted(past.savepoints))

        def effect(past: Past) -> None:
            past.savepoints -= {instant}

        def act(table: Table) -> object:
            there = {one.instant for one in table.savepoints()}
            return table.delete_savepoint(instant) if instant in there else None

        return Call(text=f"delete savepoint {instant}", act=act, effect=effect, is_repeated=True)

    def _of_a_new_one(self, past: Past) -> Call | None:
        """Without a savepoint one is made, or this would hardly ever be played."""
        if not past.moments:
            return None
        return Call(
            text="savepoint, and delete it",
            act=lambda table: table.delete_savepoint(table.savepoint().instant),
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class Restore:
    """To a savepoint, or to a write that is not long ago."""

    name: str = "restore"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        newest = max(past.savepoints, default="")
        targets = [
            number
            for number, one in enumerate(past.moments)
            if one.requested >= newest
            # What a clean has taken away is refused, and then nothing changes.
            and (one.requested in past.savepoints or not past.is_cleaned or chance.random() < 0.1)
        ]
        if not targets:
            return None
        number = chance.choice(targets[-4:])
        target = past.moments[number]

        def effect(past: Past) -> None:
            past.back_to(target)
            past.plans = {i: name for i, name in past.plans.items() if i < target.requested}

        return Call(
            text=f"restore to {target.requested} of step {target.step}",
            act=lambda table: _restore(table, target.requested),
            effect=effect,
            is_repeated=True,
            between=tuple(snapshot.rows for snapshot in past.moments[number:]),
        )


def _restore(table: Table, instant: str) -> object:
    """Builds of indexes that are under way end with it."""
    builds = table.pending_indexing()
    done = table.restore(instant)
    left = sorted({*builds} & {*table.pending_indexing()})
    if done.undone and left:
        raise Difference("restore", f"It has left the builds {', '.join(left)}.")
    return done


@dataclass(frozen=True, slots=True)
class Rollback:
    """Of the newest write, where nothing has been built on it."""

    name: str = "rollback"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.moments:
            return None
        newest = past.moments[-1]
        before = past.moments[-2] if len(past.moments) > 1 else None
        is_last = newest.requested == max(past.instants)
        if newest.requested in past.savepoints or before is None:
            return None
        if not is_last and chance.random() < 0.8:
            # Refused where a service has built on it.
            return None
        return Call(
            text=f"rollback {newest.requested} of step {newest.step}",
            act=lambda table: table.rollback(newest.requested),
            effect=lambda past: past.back_to(before),
            is_repeated=True,
        )
