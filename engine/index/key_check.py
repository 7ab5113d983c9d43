"""The key check: whether others have brought a key meanwhile that a write took for new.

Two writes that bring one key have no file group in common. The one that commits second finds out
here: it looks at every commit since its snapshot, and at each only once. It is made under the lock,
where others wait, so that it reads little there; what is more is read without the lock first.
"""

from dataclasses import dataclass

from lakewarden.engine.conflicts.conflicts import AGAIN, ObservedInstants, completed_since
from lakewarden.engine.index.brought_keys import Brought, BroughtKeys, FoundKeys
from lakewarden.engine.index.new_keys import NewKeys
from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Instant

# What is read under the lock at most; seconds are asked for between two commits.
FILES_MAX = 8
BYTES_MAX = 32 << 20
SECONDS_MAX = 2.0

_GONE = "missing_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What a key check reads with."""

    storage: Storage
    config: TableConfig
    executor: Executor
    clock: Clock
    # The write has found its keys by the record index, so that the index knows those of others.
    asks_index: bool


class KeyCheck:
    """The check of one write, from its snapshot to its commit."""

    def __init__(self, witness: Witness, new: NewKeys, since: ObservedInstants, mine: str) -> None:
        self._witness = witness
        self._new = new
        self._since = since
        self._mine = mine
        self._looked_at: set[tuple[str, str]] = set()
        self._active: ActiveTimeline | None = None

    def passes_briefly(self, active: ActiveTimeline) -> bool:
        """Check what was committed meanwhile; False if others would wait too long.

        Raises `write_conflict` where another write has brought one of the keys.
        """
        self._active = active
        return self._pass(active, _Budget(self._witness.clock, is_bounded=True))

    def read_on(self) -> None:
        """Look at all the rest of what the last look has shown, however long it takes."""
        assert self._active is not None
        self._pass(self._active, _Budget(self._witness.clock, is_bounded=False))

    def _pass(self, active: ActiveTimeline, budget: "_Budget") -> bool:
        commits = completed_since(self._since, active)
        fresh = [one for one in commits if one.key not in self._looked_at]
        others = self._others(active)
        for instant in fresh:
            brought = others.of(instant, self._new)
            if not budget.allows(brought):
                return False
            found = _found(others, brought, self._new, self._mine)
            if found is not None:
                raise _key_conflict(self._mine, instant, found)
            self._looked_at.add(instant.key)
        return True

    def _others(self, active: ActiveTimeline) -> BroughtKeys:
        witness = self._witness
        return BroughtKeys(
            witness.storage,
            witness.config,
            active,
            witness.executor,
            asks_index=witness.asks_index,
        )


class _Budget:
    """What may still be read in one look."""

    def __init__(self, clock: Clock, *, is_bounded: bool) -> None:
        self._clock = clock
        self._is_bounded = is_bounded
        self._began = clock.elapsed_seconds()
        self._files = 0
        self._bytes = 0

    def allows(self, brought: Brought) -> bool:
        self._files += len(brought.files)
        self._bytes += brought.size_bytes
        is_late = self._clock.elapsed_seconds() - self._began > SECONDS_MAX
        is_much = self._files > FILES_MAX or self._bytes > BYTES_MAX or is_late
        return not (self._is_bounded and is_much)


def _found(others: BroughtKeys, brought: Brought, new: NewKeys, mine: str) -> FoundKeys | None:
    try:
        return others.find(brought, new)
    except CorruptTable as error:
        if error.code != _GONE:
            raise
        raise _unknown_keys(mine, brought.instant) from error


def too_many_commits(mine: str) -> Conflict:
    """The error of a write that others commit beside faster than it can look at their keys."""
    return Conflict(
        "write_conflict",
        what=f"The write {mine} could not check the keys that other writers committed.",
        why="Other writers kept committing more than it may read under the lock.",
        now=AGAIN,
        instant=mine,
    )


def _key_conflict(mine: str, other: Instant, found: FoundKeys) -> Conflict:
    name = f"{other.action.value} {other.requested}"
    place = f" in partition {found.partition!r}" if found.partition else ""
    return Conflict(
        "write_conflict",
        what=f"The write {mine} conflicts with the {name}, which inserted the record "
        f"key {found.key!r}{place}.",
        why="Both writes insert this key, and a table has each key once.",
        now=AGAIN,
        instant=other.requested,
        action=other.action.value,
        partition=found.partition,
        key=found.key,
    )


def _unknown_keys(mine: str, other: Instant) -> Conflict:
    name = f"{other.action.value} {other.requested}"
    return Conflict(
        "write_conflict",
        what=f"The write {mine} could not read the keys of the {name}.",
        why="Files of that commit are gone, as after a clean.",
        now=AGAIN,
        instant=other.requested,
        action=other.action.value,
    )
