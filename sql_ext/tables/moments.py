"""Moments: tables as statements have seen them, which Spark's plans know by number.

A statement looks at a table when its names are resolved, and again when its plan is made. Both
times it has to see the same, and two plans over the same moment of a table are equal for Spark.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Lock

from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.timeline.timeline import Timeline

KEPT_MAX = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A table as it was found, under a number that no other moment has."""

    number: int
    storage: Storage
    config: TableConfig
    timeline: Timeline

    def state(self) -> TableState:
        """The table as it was; whoever asks gets one of his own, since states remember."""
        return TableState(self.storage, self.config, self.timeline)


class Moments:
    """The moments that plans may still ask for: those of writes under way, and the latest ones."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = Lock()
        self._latest: OrderedDict[int, Moment] = OrderedDict()
        self._held: dict[int, Moment] = {}

    def now(self, location: Location) -> Moment:
        """The table as it is; if nothing has happened to it, the moment that was found last."""
        storage = open_storage(location)
        config = load_config(storage)
        timeline = Timeline.load(storage, config.layout)
        with self._lock:
            last = next(
                (one for one in reversed(self._latest.values()) if _is_same(one, location)), None
            )
            if last is not None and _is_unchanged(last, config, timeline):
                self._latest.move_to_end(last.number)
                return last
            moment = Moment(next(self._numbers), storage, config, timeline)
            self._latest[moment.number] = moment
            while len(self._latest) > KEPT_MAX:
                self._latest.popitem(last=False)
            return moment

    def numbered(self, number: int, location: Location) -> Moment:
        """The moment of a plan; a plan that has waited for too long sees the table as it is."""
        with self._lock:
            known = self._held.get(number) or self._latest.get(number)
        return known or self.now(location)

    @contextmanager
    def writing(self) -> Iterator["Held"]:
        """Moments that are kept until a write has ended."""
        held = Held(self)
        try:
            yield held
        finally:
            with self._lock:
                for number in held.numbers:
                    del self._held[number]

    def _hold(self, state: TableState) -> int:
        with self._lock:
            number = next(self._numbers)
            self._held[number] = Moment(number, state.storage, state.config, state.timeline)
            return number


class Held:
    """The moments of one write."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self.numbers: list[int] = []

    def hold(self, state: TableState) -> int:
        """The number under which plans find the state that a write judges conflicts by."""
        number = self._moments._hold(state)
        self.numbers.append(number)
        return number


MOMENTS = Moments()


def _is_same(moment: Moment, location: Location) -> bool:
    return moment.storage.location == location


def _is_unchanged(last: Moment, config: TableConfig, timeline: Timeline) -> bool:
    return (
        last.config.properties == config.properties
        and last.timeline.active.files == timeline.active.files
    )
