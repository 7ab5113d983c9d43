"""Snapshots that statements have taken of tables, which Spark's plans know by number.

A statement looks at a table when its names are resolved, and again when its plan is made. Both
times it has to see the same, and two plans over the same snapshot of a table are equal for Spark.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock

from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.prune import may_hold_rows
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location

KEPT_MAX = 64


@dataclass(frozen=True, slots=True)
class NumberedSnapshot:
    """A table as it was found, under a number that no other snapshot has."""

    number: int
    snapshot: Snapshot
    # What plans have read of it.
    reads: list[ReadSpec] = field(default_factory=list)

    def fresh(self) -> Snapshot:
        """The same snapshot with nothing derived from it yet, so that plans share no memory."""
        return replace(self.snapshot)


class SnapshotRegistry:
    """The snapshots that plans may still ask for: those of writes under way, and the latest."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = Lock()
        self._latest: OrderedDict[int, NumberedSnapshot] = OrderedDict()
        self._held: dict[int, NumberedSnapshot] = {}

    def now(self, location: Location) -> NumberedSnapshot:
        """The table as it is; if nothing has happened to it, the snapshot that was taken last."""
        snapshot = load_snapshot(open_storage(location))
        with self._lock:
            last = next(
                (one for one in reversed(self._latest.values()) if _is_of(one, location)), None
            )
            if last is not None and _is_unchanged(last.snapshot, snapshot):
                self._latest.move_to_end(last.number)
                return last
            found = NumberedSnapshot(next(self._numbers), snapshot)
            self._latest[found.number] = found
            while len(self._latest) > KEPT_MAX:
                self._latest.popitem(last=False)
            return found

    def numbered(self, number: int, location: Location) -> Snapshot:
        """The snapshot of a plan.

        A plan that runs long after it was made may find its snapshot forgotten, or files of it
        removed by a clean: it sees the table as it is then, as a new plan would.
        """
        with self._lock:
            held, latest = self._held.get(number), self._latest.get(number)
        if held is not None:
            return held.fresh()
        if latest is not None and latest.snapshot.is_whole():
            return latest.fresh()
        return self.now(location).fresh()

    def note(self, number: int, read: ReadSpec) -> None:
        """Remember of a snapshot that a write holds what its statement reads."""
        with self._lock:
            held = self._held.get(number)
            if held is not None:
                held.reads.append(read)

    @contextmanager
    def writing(self) -> Iterator["HeldSnapshots"]:
        """Snapshots that are kept until a write has ended."""
        held = HeldSnapshots(self)
        try:
            yield held
        finally:
            with self._lock:
                for number in held.numbers:
                    del self._held[number]

    def _hold(self, snapshot: Snapshot) -> NumberedSnapshot:
        with self._lock:
            found = NumberedSnapshot(next(self._numbers), snapshot)
            self._held[found.number] = found
            return found


class HeldSnapshots:
    """The snapshots of one write."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._taken: list[NumberedSnapshot] = []

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(one.number for one in self._taken)

    def hold(self, snapshot: Snapshot) -> int:
        """The number under which plans find the snapshot that a write judges conflicts by."""
        held = self._registry._hold(snapshot)
        self._taken.append(held)
        return held.number

    def may_hold(self, partition: str) -> bool:
        """Whether the statement has read a partition, or would have if it had been there."""
        reads = self._taken[-1].reads if self._taken else []
        return not reads or any(may_hold_rows(read, partition) for read in reads)


SNAPSHOTS = SnapshotRegistry()


def _is_of(numbered: NumberedSnapshot, location: Location) -> bool:
    return numbered.snapshot.storage.location == location


def _is_unchanged(last: Snapshot, now: Snapshot) -> bool:
    return (
        last.config.properties == now.config.properties
        and last.timeline.active.files == now.timeline.active.files
    )
