"""Services beside writes: no write waits for them, and nothing that fails in them is lost."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground, ThreadBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.write.settings import BESIDE

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
TENDED = {
    BESIDE.key: "true",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


class Deferred(ManualBackground):
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def start(self, work: Callable[[], None]) -> None:
        self.waiting.append(work)

    def go_on(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


class Joined(ThreadBackground):
    """Threads that the test waits for at its end."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()


@dataclass
class Stream:
    """A stream into a table, of one process after the other."""

    background: ManualBackground | ThreadBackground
    storage: MemoryStorage = field(default_factory=fresh_memory_storage)
    events: EventLog = field(default_factory=EventLog)
    batches: int = 0

    def __post_init__(self) -> None:
        Table.create(
            "", SCHEMA, ["id"], type="mor", indexes=["record_index"], storage=self.storage
        ).insert(rows(0))
        self.starts()

    def starts(self) -> None:
        ports = Ports(executor=LocalExecutor(1), background=self.background, events=self.events)
        self.table = Table.on(self.storage, ports)

    def batch(self, **options: str) -> tuple[str, ...]:
        self.batches += 1
        named = {name.replace("__", "."): value for name, value in options.items()}
        commit = self.table.upsert(
            rows(self.batches), {**TENDED, **named}, stream=("s", self.batches)
        )
        return commit.errors

    def compactions(self) -> tuple[int, int]:
        """Those that are pending, and those that have completed."""
        active = self.table.timeline()
        return len(active.pending((Action.COMPACTION,))), len(active.completed((Action.COMMIT,)))

    def assert_all_there(self) -> None:
        found = self.table.read_arrow().to_pylist()
        newest = {"both": self.batches} | {f"k{n}": n for n in range(self.batches + 1)}
        assert {row["id"]: row["ts"] for row in found} == newest
        assert len(found) == len(newest)


def rows(number: int) -> pa.Table:
    pairs = [("both", number), (f"k{number}", number)]
    return pa.Table.from_pylist([{"id": id_, "ts": ts} for id_, ts in pairs], schema=SCHEMA)


def test_no_write_waits_and_one_thread_at_a_time_does_what_is_due() -> None:
    later = Deferred()
    stream = Stream(later)
    for _ in range(4):
        assert stream.batch() == ()
    assert len(later.waiting) == 1
    assert stream.compactions() == (0, 0)
    later.go_on()
    assert stream.compactions() == (0, 1)
    stream.batch()
    assert len(later.waiting) == 1
    stream.assert_all_there()


def test_what_fails_is_logged_and_in_the_result_of_a_later_write() -> None:
    later = Deferred()
    stream = Stream(later)
    stream.batch(hoodie__compaction__strategy="NoSuchThing")
    later.go_on()
    assert [one.figures["service"] for one in stream.events.named("service_left")] == ["compaction"]
    (error,) = stream.batch()
    assert error.startswith("The compaction beside writes failed: ")
    later.go_on()
    assert stream.batch() == ()
    assert stream.compactions() == (0, 1)


def test_a_plan_that_a_dead_process_has_left_is_carried_out_by_the_next_one() -> None:
    later = Deferred()
    stream = Stream(later)
    stream.batch()
    plan = stream.table.compaction.schedule()
    assert stream.compactions() == (1, 0)
    stream.starts()
    stream.batch()
    later.go_on()
    assert stream.compactions() == (0, 1)
    assert plan.instant in {one.requested for one in stream.table.timeline().completed()}
    stream.assert_all_there()


def test_batches_beside_compaction_clean_and_archive_are_all_there() -> None:
    threads = Joined()
    stream = Stream(threads)
    for _ in range(8):
        assert stream.batch(lakewarden__write__inserts_to_logs="true") == ()
    for thread in threads.threads:
        thread.join()
    stream.batch()
    for thread in threads.threads:
        thread.join()
    stream.assert_all_there()
    assert stream.compactions()[1] > 0
    assert {one.verdict.value for one in stream.table.validate()} <= {"ok", "skipped"}
