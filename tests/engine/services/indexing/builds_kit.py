"""A storage under which others do something at a named step of a build, and what builds come to."""

import re
from collections.abc import Callable
from typing import Self

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.storage.port import NO_FILES, Creation, KnownFiles, Listing, Storage
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.cancel.cancel import cancel
from tests.engine.services.indexing.indexed_tables import homes, indexed
from tests.engine.services.service_table import ServiceWorld
from tests.engine.transaction.just_before import JustBefore

RECORDS = (WantedIndex(partition="record_index"),)
INDEX = "record_index"

# The calls that begin the steps of a build, by the paths that they write; none is under the lock.
FIRST_BASE_FILE = r"/record_index/.*\.hfile$"
LAST_NOTE = r"builds/.*/groups/record_index\.record-index-0009-0\.json$"
WRITE_BEGUN = r"^/\.hoodie/timeline/\d{17}\.((delta|replace)?commit\.)?inflight$"
SERVICE_BEGUN = r"^/\.hoodie/timeline/\d{17}\.(compaction|clustering|logcompaction)\.inflight$"
CLEAN_BEGUN = r"^/\.hoodie/timeline/\d{17}\.clean\.inflight$"
# Those are.
BASE_COMPLETE = r"metadata/.*/0{14}\d{3}_\d{17}\.deltacommit$"
READY = r"hoodie\.properties$"


class Before(FaultyStorage):
    """Does something once, right before a file of a certain name is written."""

    def __init__(self, inner: Storage, clock: Clock, name: str, do: Callable[[], object]) -> None:
        super().__init__(inner, FaultPlan(), clock)
        self._moment = _Moment(re.compile(name), do)

    @property
    def has_done_it(self) -> bool:
        return self._moment.is_over

    def below(self, folder: str) -> Self:
        inner = super().below(folder)
        seen = type(self).__new__(type(self))
        seen.__dict__ |= inner.__dict__
        seen._moment = self._moment
        return seen

    def put(self, path: str, payload: bytes) -> None:
        self._moment.comes(f"{self._folder}/{path}")
        super().put(path, payload)

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        self._moment.comes(f"{self._folder}/{path}")
        return super().create_exclusive(path, payload)


class BeforeReading(Before):
    """The same, right before a file is opened or read."""

    def open(self, path: str) -> pa.NativeFile:
        self._moment.comes(f"{self._folder}/{path}")
        return super().open(path)

    def read(self, path: str) -> bytes:
        self._moment.comes(f"{self._folder}/{path}")
        return super().read(path)


class Unknowing(FaultyStorage):
    """The table as engines see it that do not look for builds."""

    hidden = rb"^hoodie\.table\.metadata\.partitions\.inflight=.*$"

    def below(self, folder: str) -> Self:
        seen = type(self).__new__(type(self))
        seen.__dict__ |= super().below(folder).__dict__
        return seen

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        found = super().list(folder, known)
        shown = tuple(one for one in found.files if ".indexing" not in one.name)
        return Listing(shown, found.folders)

    def read(self, path: str) -> bytes:
        return self._without_hidden(path, super().read(path))

    def read_if_present(self, path: str) -> bytes | None:
        found = super().read_if_present(path)
        return None if found is None else self._without_hidden(path, found)

    def _without_hidden(self, path: str, content: bytes) -> bytes:
        if not path.endswith("hoodie.properties"):
            return content
        return re.compile(self.hidden, re.MULTILINE).sub(b"", content)


class Deaf(Unknowing):
    """The table as engines see it that know of no metadata table."""

    hidden = rb"^hoodie\.table\.metadata\.partitions(\.inflight)?=.*$"


class _Moment:
    def __init__(self, name: re.Pattern[str], do: Callable[[], object]) -> None:
        self._name, self._do, self.is_over = name, do, False

    def comes(self, path: str) -> None:
        if not self.is_over and self._name.search(path):
            self.is_over = True
            self._do()


def with_file_lock(world: ServiceWorld) -> ServiceWorld:
    """The lock in a file, for everyone: its taking is seen, and who stands still loses it."""
    update_properties(world.storage, {"hoodie.write.lock.provider": "filesystem"})
    return world


def at(world: ServiceWorld, moment: str | int, do: Callable[[], object]) -> FaultyStorage:
    """The storage under which something is done before a file, or before the nth lock from 0."""
    if isinstance(moment, int):
        return JustBefore(world.storage, world.clock, do, moment)
    return Before(world.storage, world.clock, moment, do)


def call_off_half_plans(world: ServiceWorld, plan: FaultPlan) -> None:
    """Half a plan has no owner, as plans of Java have none: it stays until it is called off."""
    for half in pending_builds(world):
        assert FaultKind.TORN in {fault.kind for fault in plan.faults}, plan
        cancel(world.context(83), half, "half a plan", force=True)
    assert not pending_builds(world), plan


def pending_builds(world: ServiceWorld) -> list[str]:
    active = world.snapshot().timeline.active
    return [one.requested for one in active.pending((Action.INDEXING,))]


def assert_true(table: Table) -> None:
    """The record index is ready, and leads to every row."""
    assert table.config.has_metadata(INDEX)
    assert indexed(table) == homes(table)


def assert_gone(world: ServiceWorld) -> None:
    """Nothing of a build is left, but for the ledger that says how it ended."""
    assert not pending_builds(world)
    config = world.snapshot().config
    assert INDEX not in (*config.metadata_partitions, *config.metadata_partitions_inflight)
    left = [one.path for one in world.storage.walk(".hoodie/metadata/record_index")]
    left += [one.path for one in world.storage.walk(".hoodie/.lakewarden/builds")]
    assert not left
