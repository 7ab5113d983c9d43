"""Retention: the past is answered exactly, or refused by name, whatever cleans have removed."""

from collections.abc import Callable
from functools import partial
from random import Random

import pyarrow as pa
import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from tests.crash.dying_operations import CrashedTable, killed, ports
from tests.engine.read.table_histories import History, answer, check
from tests.engine.services.service_table import (
    COW,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.sampling import IS_SIMULATION, sample
from tests.writing.shapes import PARTITIONED_RECORD_INDEX, Shape

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
ONE_VERSION: dict[str, object] = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
ONE_COMMIT: dict[str, object] = {"hoodie__clean__commits__retained": 1}
TYPES = pytest.mark.parametrize("kind", ["cow", "mor"])
SEEDS = range(300 if IS_SIMULATION else 1)
STEPS = 40 if IS_SIMULATION else 20
SHAPES = (
    Shape("cow", is_event_time=False),
    Shape("mor", is_event_time=False, index=PARTITIONED_RECORD_INDEX),
    Shape("cow", is_event_time=False, has_metadata=False),
    Shape("mor", is_event_time=False, has_metadata=False),
    Shape("mor", is_event_time=False, index="BUCKET"),
)
CHECKED = ("clean", "archive", "die", "restore", "roll_back", "forget_savepoint", "run", "serve")


class Tale:
    """A table in memory, a second between its writes."""

    def __init__(self, kind: str, **properties: object) -> None:
        self.clock = ManualClock()
        storage = fresh_memory_storage(clock=self.clock)
        self.table = Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"],
            type=kind,
            properties=properties,
            storage=storage,
            ports=ports(self.clock, 1),
        )
        self.storage = storage
        self.seed = 1

    def now(self) -> Table:
        self.seed += 1
        self.clock.advance(1000)
        return Table.on(self.storage, ports(self.clock, self.seed))

    def upsert(self, *keys: str, v: int) -> tuple[str, str]:
        """Rows in the partitions that their first letters name; when it was started and
        completed."""
        done = self.now().upsert([{"id": key, "p": key[0], "v": v} for key in keys])
        return done.instant, done.completed

    def rows(self, **arguments: object) -> list[tuple[str, int]]:
        return pairs(self.now().read_arrow(["id", "v"], **arguments))

    def changes(self, since: str, until: str | None = None) -> list[tuple[str, int]]:
        return pairs(self.now().changes_arrow(since, until, columns=["id", "v"]))


def pairs(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["v"]) for row in rows.to_pylist())


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(InvalidRequest) as refused:
        ask()
    return refused.value.code


@TYPES
def test_a_past_whose_slices_a_clean_by_versions_removed_is_refused_and_not_gone_back_to(
    kind: str,
) -> None:
    tale = Tale(kind)
    tale.upsert("a1", "a2", v=1)
    tale.upsert("b1", v=1)
    old, _ = tale.upsert("b1", v=2)
    if kind == "mor":
        tale.now().compaction.schedule_and_run()
    tale.upsert("a1", v=4)
    if kind == "mor":
        tale.now().compaction.schedule_and_run()
    before = tale.rows()
    clean = tale.now().clean(options=ONE_VERSION).instant
    assert refusal(lambda: tale.rows(as_of=old)) == "history_cleaned"
    assert refusal(lambda: tale.rows(as_of=old, use_metadata=False)) == "history_cleaned"
    assert refusal(lambda: tale.now().file_slices(as_of=old)) == "history_cleaned"
    assert refusal(lambda: tale.now().restore(old)) == "files_cleaned"
    assert refusal(lambda: tale.now().savepoint(old)) == "files_cleaned"
    retention = tale.now().retention()
    assert (retention.as_of_set_by, retention.restore_set_by) == (clean, clean)
    assert old < (retention.earliest_as_of or "") < (clean or "")
    assert tale.rows() == tale.rows(as_of=retention.earliest_as_of) == before
    # What another partition has lost is no matter to this one.
    assert tale.rows(as_of=old, filter=[("p", "=", "c")]) == []


def test_a_past_of_which_no_file_is_gone_is_read_though_a_clean_has_been() -> None:
    tale = Tale("cow")
    first, _ = tale.upsert("a1", v=1)
    tale.upsert("b1", v=1)
    tale.upsert("a1", v=2)
    tale.upsert("a1", v=3)
    tale.now().clean(options=ONE_VERSION)
    assert refusal(lambda: tale.rows(as_of=first)) == "history_cleaned"
    in_b = [("p", "=", "b")]
    assert tale.rows(as_of=first, filter=in_b) == []


def test_changes_whose_logs_a_clean_removed_are_refused_and_to_now_they_are_whole() -> None:
    tale = Tale("mor")
    _, first = tale.upsert("a1", "a2", v=1)
    _, second = tale.upsert("a1", "a2", v=2)
    assert tale.changes(first, second) == [("a1", 2), ("a2", 2)]
    tale.now().compaction.schedule_and_run()
    tale.upsert("a1", v=3)
    _, last = tale.upsert("a1", v=4)
    clean = tale.now().clean(commits_retained=1).instant
    assert refusal(lambda: tale.changes(first, second)) == "history_cleaned"
    assert refusal(lambda: tale.changes("0", first)) == "history_cleaned"
    assert tale.changes(first) == tale.changes(first, last) == [("a1", 4), ("a2", 2)]
    retention = tale.now().retention()
    assert (retention.earliest_changes, retention.changes_set_by) == (second, clean)


def test_changes_from_the_start_are_the_table_though_a_clustering_is_archived() -> None:
    tale = Tale("cow")
    for v in (1, 2):
        rows = [{"id": f"{p}{v}{n}", "p": p, "v": v} for p in "ab" for n in range(3)]
        tale.now().bulk_insert(pa.Table.from_pylist(rows, schema=SCHEMA))
    tale.now().clustering.schedule_and_run()
    ends = [tale.upsert("a10", v=v)[1] for v in range(10, 16)]
    tale.now().clean(commits_retained=1)
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    tale.now().maintain_metadata(["compaction"])
    archived = tale.now().archive(options={**few, "hoodie.clean.commits.retained": "1"})
    assert any(one.action.value == "replacecommit" for one in archived.instants)
    assert tale.changes("0") == tale.changes("0", ends[-1]) == tale.rows()
    # A later beginning asks the archive what the clustering has replaced.
    first = archived.instants[0]
    assert len(tale.changes(first.completed or "")) == 7
    # The state before the last write that is kept whole is gone, also from the start.
    assert refusal(lambda: tale.changes("0", ends[2])) == "history_cleaned"


def test_a_log_that_is_gone_is_missed_though_its_file_group_has_newer_ones_in_the_window() -> None:
    tale = Tale("mor")
    _, first = tale.upsert("a1", "a2", v=1)
    tale.upsert("a1", v=2)
    planned = tale.now().compaction.schedule()
    assert planned
    _, third = tale.upsert("a2", v=3)
    assert tale.changes(first, third) == [("a1", 2), ("a2", 3)]
    tale.now().compaction.run()
    _, last = tale.upsert("a2", v=4)
    tale.now().clean(commits_retained=1)
    assert refusal(lambda: tale.changes(first, third)) == "history_cleaned"
    assert tale.changes(first, last) == [("a1", 2), ("a2", 4)]


@pytest.mark.parametrize("use_metadata", [True, False], ids=["metadata", "listing"])
def test_a_clean_that_died_refuses_what_it_has_removed_and_nothing_else(
    *, use_metadata: bool
) -> None:
    world = new_service_world(COW, inserted(4), *(updated(4, ts=at) for at in range(2, 5)))
    first, second, *_ = world.table(97).timeline().completed()
    expected, changed = contents(COW, inserted(4)), contents(COW, updated(4))
    window = first.completed or "", second.completed
    answers = set()

    def cleaning(one: CrashedTable, stage: FaultyStorage) -> object:
        return clean(ServiceWorld(one.clock, one.storage).context(50, stage, **ONE_COMMIT))

    for death in killed(world, cleaning, every=3).values():
        table = death.world.table(60)
        read = partial(table.read_arrow, as_of=first.requested, use_metadata=use_metadata)
        found = answer(read)
        assert found in (expected, "history_cleaned"), death
        answered = answer(partial(table.changes_arrow, *window))
        assert answered in (changed, "history_cleaned"), death
        is_pending = bool(death.world.table(61).timeline().pending((Action.CLEAN,)))
        answers.add((is_pending, found == expected))
    # Before it has come to the files they are read, and afterwards they are known to be gone.
    assert {(True, True), (True, False)} <= answers


@TYPES
@pytest.mark.parametrize("has_metadata", [True, False], ids=["metadata", "listing"])
@pytest.mark.parametrize("then", ["upsert", "clean", "sweep", "delete_savepoint"])
def test_older_rows_stay_when_a_restore_leaves_savepointed_writes_alone(
    kind: str, then: str, has_metadata: bool
) -> None:
    small = {
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.index.bloom.num_entries": 50,
        "hoodie.metadata.enable": has_metadata,
    }
    tale = Tale(kind, **small)
    for key in "abc":
        tale.upsert(key, v=1)
    kept, _ = tale.upsert("d", v=1)
    tale.now().savepoint()
    for n in range(6):
        tale.upsert(f"x{n % 3}", v=n)
    tale.now().maintain_metadata(["compaction"])
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    options = {**few, "hoodie.clean.commits.retained": "1"}
    options |= {"hoodie.compact.inline.max.delta.commits": "1"}
    assert len(tale.now().archive(options=options).instants) >= 3
    tale.now().restore(kept)
    expected = dict.fromkeys("abcd", 1)
    assert dict(tale.rows()) == dict(tale.rows(use_metadata=False)) == expected
    match then:
        case "upsert":
            done = tale.now().upsert([{"id": "a", "p": "a", "v": 2}])
            assert (done.rows_inserted, done.rows_updated) == (0, 1)
            expected["a"] = 2
        case "clean":
            for v in (1, 2):
                tale.now().clean(options=ONE_VERSION)
                tale.upsert("e", v=v)
            expected["e"] = 2
        case "sweep":
            tale.clock.advance(3 * 3_600_000)
            tale.now().rollback_failed_writes()
            tale.now().sweep()
        case _:
            tale.now().delete_savepoint(kept)
    for use_metadata in (True, False):
        assert tale.rows(use_metadata=use_metadata) == sorted(expected.items())


def test_a_table_that_lost_nothing_can_be_asked_for_all_there_was() -> None:
    tale = Tale("cow")
    assert str(tale.now().retention()).startswith("time travel from the beginning")
    first, _ = tale.upsert("a1", v=1)
    tale.upsert("a1", v=2)
    found = tale.now().retention()
    assert (found.earliest_as_of, found.earliest_changes, found.earliest_end) == (None, None, None)
    assert (found.earliest_restore, found.restore_set_by) == (first, None)


def test_a_savepoint_stays_among_what_can_be_asked_and_archived_writes_cannot_be_restored() -> None:
    tale = Tale("cow")
    kept, _ = tale.upsert("a1", v=1)
    tale.now().savepoint()
    writes = [tale.upsert("a1", v=v)[0] for v in range(2, 8)]
    tale.now().clean(commits_retained=1)
    found = tale.now().retention()
    assert found.savepoints == (kept,)
    assert tale.rows(as_of=kept) == [("a1", 1)]
    assert refusal(lambda: tale.rows(as_of=writes[0])) == "history_cleaned"
    tale.now().delete_savepoint(kept)
    tale.now().maintain_metadata(["compaction"])
    few = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"}
    # One commit is kept, and as of the one before it everything is there, too.
    tale.now().archive(options={**few, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"})
    found = tale.now().retention()
    assert found.earliest_as_of == writes[-2]
    assert (found.earliest_restore, found.restore_set_by) == (writes[-1], writes[-2])
    assert refusal(lambda: tale.now().restore(writes[-2])) == "instant_archived"


def test_a_past_that_a_savepoint_keeps_is_read_without_the_cleans_since() -> None:
    tale = Tale("cow")
    kept, _ = tale.upsert("a1", v=1)
    tale.now().savepoint()
    for v in range(2, 6):
        tale.upsert("a1", v=v)
        tale.now().clean(commits_retained=1)
    looked = FaultyStorage(tale.storage)
    assert pairs(Table.on(looked).read_arrow(["id", "v"], as_of=kept)) == [("a1", 1)]
    assert not any(call.path.endswith(".clean") for call in looked.calls)


def test_a_savepoint_that_a_clean_has_overlooked_keeps_nothing() -> None:
    tale = Tale("cow")
    kept, _ = tale.upsert("a1", v=1)
    tale.now().savepoint()
    for v in (2, 3):
        tale.upsert("a1", v=v)
    active = tale.now().timeline()
    (there,) = active.savepoints()
    path, content = active.path(there), active.read(there)
    tale.now().delete_savepoint(kept)
    tale.now().clean(commits_retained=1)
    tale.storage.put(path, content)
    assert refusal(lambda: tale.rows(as_of=kept)) == "history_cleaned"
    assert refusal(lambda: tale.now().restore(kept)) == "files_cleaned"
    assert tale.now().retention().savepoints == ()


def test_an_overwrite_is_not_rolled_back_when_a_clean_has_removed_what_it_replaced() -> None:
    tale = Tale("cow")
    tale.upsert("a1", v=1)
    # Older slices of the file group stay, and the newest one goes.
    tale.now().savepoint()
    tale.upsert("a1", v=2)
    done = tale.now().overwrite_partitions([{"id": "a2", "p": "a", "v": 3}])
    tale.now().clean(options=ONE_VERSION)
    assert refusal(lambda: tale.now().rollback(done.instant)) == "inputs_cleaned"
    assert tale.rows() == [("a2", 3)]


def test_a_snapshot_reads_no_clean_and_nothing_of_the_archive() -> None:
    tale = Tale("cow")
    for v in range(2, 8):
        tale.upsert("a1", v=v)
        tale.now().clean(commits_retained=1)
    tale.now().maintain_metadata(["compaction"])
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    assert tale.now().archive(options={**few, "hoodie.clean.commits.retained": "1"})
    looked = FaultyStorage(tale.storage)
    assert pairs(Table.on(looked).read_arrow(["id", "v"], use_metadata=False)) == [("a1", 7)]
    assert not any(".clean" in call.path or "history" in call.path for call in looked.calls)


def test_what_is_archived_beyond_a_savepoint_stays_visible_when_the_savepoint_goes() -> None:
    tale = Tale("cow", **{"hoodie.parquet.small.file.limit": 0})
    kept, _ = tale.upsert("a", v=1)
    tale.now().savepoint()
    for key in "bcdef":
        tale.upsert(key, v=1)
    tale.now().maintain_metadata(["compaction"])
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    options = {**few, "hoodie.clean.commits.retained": "1"}
    beyond = {**options, "hoodie.archive.beyond.savepoint": "true"}
    assert len(tale.now().archive(options=beyond).instants) >= 3
    tale.now().delete_savepoint(kept)
    for use_metadata in (True, False):
        assert tale.rows(use_metadata=use_metadata) == [(key, 1) for key in "abcdef"]
    found = tale.now().upsert([{"id": "b", "p": "b", "v": 2}])
    assert (found.rows_inserted, found.rows_updated) == (0, 1)


@pytest.mark.parametrize("shape", sample(SHAPES, 5), ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_the_past_is_exact_or_refused(seed: int, shape: Shape) -> None:
    history = History(shape, Random(seed))
    for _ in range(STEPS):
        history.step()
        if history.done[-1].split(":")[0] in CHECKED:
            check(history)
    check(history)
