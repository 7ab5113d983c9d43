"""Markers beside Java: its detection of either type sees our writes, and it rolls back dead ones.

A write of ours is held, or dies, between its calls to the storage.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from lakewarden import Table
from lakewarden.engine.detection.rivals import GAVE_WAY
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, StorageCall, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER, marker_folder
from tests.canonical import canonical_rows, difference
from tests.interop.java_writes import COLUMNS, SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.interop.races_kit import PATIENT, SEVERAL_WRITERS
from tests.writing.model import Model, Write, contents_of
from tests.writing.shapes import Shape, carry_out

PLACES = "abcdef"
DETECTION = "hoodie.write.concurrency.early.conflict.detection.enable"
DETECTOR = "hoodie.write.concurrency.async.conflict.detector"
OURS = {**SEVERAL_WRITERS, DETECTION: "true"}
THEIRS = {
    **SMALL,
    **SEVERAL_WRITERS,
    **PATIENT,
    DETECTION: "true",
    f"{DETECTOR}.initial_delay_ms": "0",
    f"{DETECTOR}.period_ms": "50",
}
BY_SERVER = {
    "hoodie.embed.timeline.server": "true",
    "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
}
PATIENCE_SECONDS = 120


def upsert(ts: int, places: str = PLACES) -> Write:
    """One row in each of some partitions."""
    return Write(
        "upsert",
        tuple(
            {"id": f"k{p}", "p": p, "ts": ts, "v": float(ts), "name": f"at {ts}"} for p in places
        ),
    )


def begun(shape: Shape, path: Path) -> Model:
    """A table with one row in each partition, so that each has one file group."""
    carry_out(shape.create(str(path)), upsert(1))
    model: Model = shape.model()
    model.apply(upsert(1))
    return model


class Gate:
    """A storage on which the first data file waits until it may be made."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.is_there, self.may_pass = Event(), Event()

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        return partial(self._created, found) if name == "create" else found

    def _created(self, create: Callable[[str], object], path: str) -> object:
        if path.startswith("p="):
            self.is_there.set()
            assert self.may_pass.wait(PATIENCE_SECONDS)
        return create(path)


@contextmanager
def held_write(path: Path, write: Write) -> Iterator[None]:
    """A live write of ours that has announced its files, and makes them at the end."""
    gate = Gate(open_storage(Location(str(path))))
    table = Table.on(cast(Storage, gate), Ports())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(table.upsert, write.table(), OURS)
        try:
            assert gate.is_there.wait(PATIENCE_SECONDS)
            yield
        finally:
            gate.may_pass.set()
        answer.result()


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("settings", [THEIRS, {**THEIRS, **BY_SERVER}], ids=["direct", "server"])
def test_java_gives_way_to_an_older_write_of_ours(
    kind: str, settings: dict[str, str], java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    model = begun(Shape(kind, has_metadata=False), path)
    theirs = JavaWriter(java, path, settings)
    with held_write(path, upsert(5, "cd")):
        theirs.carry_out(upsert(4, "f"))
        # On copy-on-write Spark cuts the end of the message, where the early conflict is named.
        gave_way = r"EarlyConflict|instantiate the HoodieMergeHandle"
        with pytest.raises(Refused, match=gave_way):
            theirs.carry_out(upsert(4))
    model.apply(upsert(4, "f"))
    model.apply(upsert(5, "cd"))
    assert contents_of(Table(str(path)).read_arrow()) == model.contents()
    assert not difference(java.read(path), canonical_rows(Table(str(path)).read_arrow()))


def test_java_detects_conflicts_on_a_table_that_has_no_writes(
    java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    shape = Shape("cow", has_metadata=False)
    shape.create(str(path))
    JavaWriter(java, path, THEIRS).carry_out(upsert(1))
    model: Model = shape.model()
    model.apply(upsert(1))
    assert contents_of(Table(str(path)).read_arrow()) == model.contents()


def dying(path: Path, plan: FaultPlan, markers: str) -> tuple[StorageCall, ...]:
    storage = FaultyStorage(open_storage(Location(str(path))), plan)
    table = Table.on(storage, Ports(executor=LocalExecutor(1)))
    with suppress(Crashed):
        table.upsert(upsert(5, "abz").table(), {"hoodie.write.markers.type": markers})
    return storage.calls


def deaths(shape: Shape, markers: str, folder: Path) -> list[FaultPlan]:
    """After each marker and each data file."""
    begun(shape, folder / "counted")
    calls = dying(folder / "counted", FaultPlan(), markers)
    made = (one for one in calls if one.operation in ("put", "close"))
    plans = crash_plans(one for one in made if one.path.startswith((TEMP_FOLDER, "p=")))
    return [plan for plan in plans if "fail_after" in str(plan)]


@pytest.mark.parametrize(
    ("kind", "markers"),
    [("cow", "TIMELINE_SERVER_BASED"), ("cow", "BOTH"), ("mor", "BOTH")],
)
def test_java_rolls_our_write_back_wherever_it_died(
    kind: str, markers: str, java: JavaJudge, disk_path: Path
) -> None:
    shape = Shape(kind, has_metadata=False)
    plans = deaths(shape, markers, disk_path)
    assert len(plans) >= 5
    for number, plan in enumerate(plans):
        path = disk_path / f"t{number}"
        model = begun(shape, path)
        dying(path, plan, markers)
        (dead,) = Table(str(path)).timeline().pending()
        JavaWriter(java, path).carry_out(upsert(3, "f"))
        model.apply(upsert(3, "f"))
        listed = StorageListing(open_storage(Location(str(path)))).files()
        left = [file.name for files in listed.values() for file in files]
        assert not [name for name in left if dead.requested in name], plan
        assert not (path / marker_folder(dead.requested)).exists(), plan
        assert contents_of(Table(str(path)).read_arrow()) == model.contents(), plan
        assert COLUMNS.keys() <= java.read(path)[0].keys()


def jvm_of(java: JavaJudge) -> int:
    """The process that Python talks to."""
    children = Path(f"/proc/{java.pid}/task/{java.pid}/children").read_text().split()
    names = {int(one): Path(f"/proc/{one}/comm").read_text().strip() for one in children}
    return next(pid for pid, name in names.items() if name == "java")


def announced_by_java(path: Path, known: set[str]) -> str | None:
    """The instant of a pending write that has named its file groups, and holds no lock."""
    timeline = path / ".hoodie" / "timeline"
    names = {one.name for one in timeline.iterdir() if not one.name.endswith(".crc")}
    for name in sorted(names - known):
        instant = name.partition(".")[0]
        is_inflight = name.endswith("inflight") and (timeline / name).stat().st_size
        if is_inflight and not any(one.startswith(f"{instant}_") for one in names):
            return instant
    return None


@contextmanager
def stopped_write(java: JavaJudge, path: Path, settings: dict[str, str]) -> Iterator[str]:
    """A live write of Java that has told which file groups it updates, and stands still.

    Where it was too quick, or had the lock already, it is another one's turn.
    """
    theirs, jvm = JavaWriter(java, path, settings), jvm_of(java)
    for ts in range(10, 30):
        known = {one.name for one in (path / ".hoodie" / "timeline").iterdir()}
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(theirs.carry_out, upsert(ts, "cd"))
            while not announced_by_java(path, known) and not answer.done():
                pass
            os.kill(jvm, signal.SIGSTOP)
            try:
                instant = announced_by_java(path, known)
                is_held = instant is not None and not (path / ".hoodie" / "lock").exists()
                if is_held and not answer.done():
                    assert instant is not None
                    yield instant
            finally:
                os.kill(jvm, signal.SIGCONT)
            answer.result()
        if is_held:
            return
    raise AssertionError("Java was too quick each time.")


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("settings", [THEIRS, {**THEIRS, **BY_SERVER}], ids=["direct", "server"])
def test_ours_gives_way_to_an_older_write_of_java_before_its_first_file(
    kind: str, settings: dict[str, str], java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    begun(Shape(kind, has_metadata=False), path)
    storage = open_storage(Location(str(path)))
    with stopped_write(java, path, settings) as instant:
        files = {one for one in path.glob("p=*/*") if not one.name.endswith(".crc")}
        with pytest.raises(Conflict) as gave_way:
            Table(str(path)).upsert(upsert(40, "bc").table(), OURS)
        Table(str(path)).upsert(upsert(41, "f").table(), OURS)
        made = {one for one in path.glob("p=*/*") if not one.name.endswith(".crc")} - files
    assert gave_way.value.code == GAVE_WAY
    assert gave_way.value.parameters["instant"] == instant
    assert {one.parent.name for one in made} == {"p=f"}
    assert not storage.walk(".hoodie/.lakewarden/beats")
    rows = {str(row["p"]): row["ts"] for row in contents_of(Table(str(path)).read_arrow())}
    assert rows["c"] == rows["d"] >= 10
    assert (rows["b"], rows["f"]) == (1, 41)
    # Once Java has ended it is ours' turn.
    Table(str(path)).upsert(upsert(42, "bc").table(), OURS)
    assert not difference(java.read(path), canonical_rows(Table(str(path)).read_arrow()))
