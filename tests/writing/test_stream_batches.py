"""Batches of a stream: each is in the table once, and what does not follow is refused by name."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata.commit import decode
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.timeline.ledger.streams import stream_folder
from lakewarden.engine.write.operations import apply_changes
from lakewarden.engine.write.request import Commit, StreamBatch
from lakewarden.engine.write.streams import STREAM_KEY
from tests.crash.dying_operations import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    CrashedTable,
    new_world,
    ports,
)
from tests.engine.transaction.hooked import Hook
from tests.writing.model import SCHEMA
from tests.writing.shapes import Shape

SHAPE = Shape("mor", index="RECORD_INDEX", is_partitioned=False)


@pytest.fixture
def world() -> CrashedTable:
    return new_world(SHAPE, ())


# Ids are drawn by seeds, and no two clients draw the same.
_SEEDS = count(100)


def client(world: CrashedTable) -> Table:
    return world.table(next(_SEEDS))


def rows(*keys: str, ts: int = 1, partition: str = "a") -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "p": partition, "ts": ts, "v": 0.0, "name": key} for key in keys],
        schema=SCHEMA,
    )


def keys(world: CrashedTable) -> list[str]:
    return sorted(client(world).read_arrow(["id"]).column("id").to_pylist())


def batch(number: int, query: str = "", checkpoint: str = "", stream: str = "s") -> StreamBatch:
    return StreamBatch(stream=stream, number=number, query=query, checkpoint=checkpoint)


def filled(world: CrashedTable, batches: int) -> list[Commit]:
    """Batches of one key each."""
    return [client(world).upsert(rows(f"k{n}"), stream=("s", n)) for n in range(batches)]


def refused(code: str, act: Callable[[], object]) -> LakewardenError:
    with pytest.raises(LakewardenError) as error:
        act()
    assert error.value.code == code
    return error.value


def test_a_batch_that_comes_again_writes_nothing_and_returns_what_it_did(
    world: CrashedTable,
) -> None:
    first = client(world).upsert(rows("a", "b"), stream=("s", 0))
    again = client(world).upsert(rows("b", "a"), stream=("s", 0))
    assert again.is_repeated
    assert not first.is_repeated
    for name in ("instant", "completed", "rows_written", "rows_inserted", "files", "bytes"):
        assert getattr(again, name) == getattr(first, name)
    assert len(client(world).timeline().completed()) == 1


def test_a_batch_that_comes_again_is_not_inserted_twice(world: CrashedTable) -> None:
    for _ in range(2):
        client(world).insert(rows("a"), stream=("s", 0))
    assert keys(world) == ["a"]


def test_deletes_are_batches_too(world: CrashedTable) -> None:
    filled(world, 1)
    for _ in range(2):
        client(world).delete(["k0"], stream=("s", 1))
    assert keys(world) == []


def test_the_same_keys_as_deletes_are_other_rows(world: CrashedTable) -> None:
    filled(world, 1)
    refused("stream_batch_differs", lambda: client(world).delete(["k0"], stream=("s", 0)))
    assert keys(world) == ["k0"]


def test_other_rows_under_the_number_of_a_batch_are_refused(world: CrashedTable) -> None:
    filled(world, 1)
    refused("stream_batch_differs", lambda: client(world).upsert(rows("x"), stream=("s", 0)))
    refused("stream_batch_differs", lambda: client(world).upsert(rows(), stream=("s", 0)))


def test_a_batch_without_rows_is_recorded_and_makes_no_instant(world: CrashedTable) -> None:
    filled(world, 1)
    for _ in range(2):
        assert client(world).upsert(rows(), stream=("s", 1)).instant is None
    client(world).upsert(rows("a"), stream=("s", 2))
    assert len(client(world).timeline().completed()) == 2
    refused("stream_batch_differs", lambda: client(world).upsert(rows("x"), stream=("s", 1)))


def test_another_depth_than_none_is_refused_before_anything_is_written(world: CrashedTable) -> None:
    deep = {"lakewarden.stream.depth": "1"}
    refused("stream_depth", lambda: client(world).upsert(rows("a"), deep, stream=("s", 0)))
    assert client(world).streams() == ()
    client(world).upsert(rows("a"), {"lakewarden.stream.depth": "0"}, stream=("s", 0))


def test_two_streams_never_skip_batches_of_each_other(world: CrashedTable) -> None:
    for stream in ("one", "two", "three"):
        for number in range(10):
            client(world).upsert(rows(f"{stream}-{number}"), stream=(stream, number))
    assert len(keys(world)) == 30


def test_a_batch_that_leaves_others_out_is_refused(world: CrashedTable) -> None:
    filled(world, 2)
    refused("stream_gap", lambda: client(world).upsert(rows("x"), stream=("s", 3)))


def test_a_stream_may_begin_with_any_batch(world: CrashedTable) -> None:
    client(world).upsert(rows("a"), stream=("s", 7))
    client(world).upsert(rows("b"), stream=("s", 8))
    refused("stream_batch_too_old", lambda: client(world).upsert(rows("b"), stream=("s", 6)))


def test_what_is_known_of_a_stream_is_bounded(world: CrashedTable) -> None:
    filled(world, 40)
    refused("stream_batch_too_old", lambda: client(world).upsert(rows("k0"), stream=("s", 0)))
    assert client(world).upsert(rows("k9"), stream=("s", 9)).is_repeated
    files = world.storage.list(stream_folder("s")).files
    assert len(files) <= 4
    assert max(file.size_bytes for file in files) < 8_000


def test_another_query_under_the_same_name_is_refused(world: CrashedTable) -> None:
    client(world).upsert(rows("a"), stream=batch(0, "q1"))
    refused("stream_of_other_query", lambda: client(world).upsert(rows("b"), stream=batch(0, "q2")))
    refused("stream_of_other_query", lambda: client(world).upsert(rows("b"), stream=batch(1, "q2")))


def test_a_query_under_another_name_is_refused(world: CrashedTable) -> None:
    client(world).upsert(rows("a"), stream=batch(0, "q1"))
    renamed = batch(1, "q1", stream="other")
    assert "'s'" in str(
        refused("stream_renamed", lambda: client(world).upsert(rows("b"), stream=renamed))
    )


def test_a_copy_of_a_checkpoint_is_refused(world: CrashedTable) -> None:
    client(world).upsert(rows("a"), stream=batch(0, "q1", "/here"))
    copied = batch(1, "q1", "/there")
    refused("stream_checkpoint_copied", lambda: client(world).upsert(rows("b"), stream=copied))


@pytest.mark.parametrize(
    "given", [("", 0), ("s", -1), ("s", "1"), "s", ("s", True), ("x" * 201, 0)]
)
def test_what_names_no_batch_is_refused(world: CrashedTable, given: object) -> None:
    refused("bad_stream", lambda: client(world).upsert(rows("a"), stream=given))  # type: ignore[arg-type]


def test_the_commit_says_which_batch_it_is(world: CrashedTable) -> None:
    commit = client(world).upsert(rows("a", "b"), stream=batch(4, "q1"))
    assert commit.instant is not None
    active = client(world).timeline()
    content = active.read(active.completed()[-1])
    said = decode(content, "the commit").extra_metadata[STREAM_KEY]
    assert '"name": "s", "batch": 4, "query": "q1", "rows": 2' in said


def test_a_batch_is_known_when_its_commit_is_archived(world: CrashedTable) -> None:
    commits = filled(world, 3)
    for number in range(8):
        client(world).upsert(rows(f"o{number}"))
    client(world).clean(commits_retained=1)
    client(world).archive(min_commits=2, max_commits=3, commits_retained=1)
    assert commits[-1].instant not in {one.requested for one in client(world).timeline().instants}
    again = client(world).upsert(rows("k2"), stream=("s", 2))
    assert again.is_repeated
    assert (again.instant, again.rows_inserted) == (commits[-1].instant, 1)
    client(world).upsert(rows("k3"), stream=("s", 3))


def test_after_a_rollback_the_batch_is_written_again(world: CrashedTable) -> None:
    newest = filled(world, 2)[-1].instant
    assert newest is not None
    client(world).rollback(newest)
    refused("stream_taken_back", lambda: client(world).upsert(rows("k2"), stream=("s", 2)))
    assert not client(world).upsert(rows("k1"), stream=("s", 1)).is_repeated
    client(world).upsert(rows("k2"), stream=("s", 2))
    assert keys(world) == ["k0", "k1", "k2"]


def test_after_a_restore_the_stream_goes_on_from_there_or_is_refused(world: CrashedTable) -> None:
    commits = filled(world, 2)
    client(world).savepoint(commits[-1].instant)
    client(world).upsert(rows(), stream=("s", 2))
    for number in (3, 4):
        client(world).upsert(rows(f"k{number}"), stream=("s", number))
    world.clock.advance(1000)
    assert commits[-1].instant is not None
    client(world).restore(commits[-1].instant)
    error = refused("stream_taken_back", lambda: client(world).upsert(rows("k5"), stream=("s", 5)))
    assert error.parameters["lost"] == 4
    assert client(world).streams()[0].taken_back == (3,)
    assert client(world).upsert(rows(), stream=("s", 2)).is_repeated
    for number in (3, 4, 5):
        client(world).upsert(rows(f"k{number}"), stream=("s", number))
    assert keys(world) == [f"k{number}" for number in (0, 1, 3, 4, 5)]


def test_a_restore_to_before_the_stream_lets_it_begin_anew(world: CrashedTable) -> None:
    before = client(world).upsert(rows("x")).instant
    assert before is not None
    client(world).savepoint(before)
    filled(world, 2)
    client(world).restore(before)
    refused("stream_taken_back", lambda: client(world).upsert(rows("k1"), stream=("s", 1)))
    filled(world, 2)
    assert keys(world) == ["k0", "k1", "x"]


def test_what_was_rolled_back_long_ago_does_not_count_as_archived(world: CrashedTable) -> None:
    newest = filled(world, 2)[-1].instant
    assert newest is not None
    client(world).rollback(newest)
    for number in range(8):
        client(world).upsert(rows(f"o{number}"))
    world.clock.advance(SWEPT_AFTER_MS)
    client(world).clean(commits_retained=1)
    client(world).archive(min_commits=2, max_commits=3, commits_retained=1)
    assert newest < client(world).timeline().completed()[0].requested
    assert not client(world).upsert(rows("k1"), stream=("s", 1)).is_repeated
    assert "k1" in keys(world)


def test_a_second_writer_of_a_live_batch_is_refused(world: CrashedTable) -> None:
    """Whatever call the first one is at, the second one is refused, or comes before or after it."""
    outcomes = set()
    for at in (*range(1, 12), *range(12, 200, 9)):
        stage = world.copy()
        said: list[str] = []
        hook = Hook(at, lambda stage=stage, said=said: said.append(tried(stage, 60)))  # type: ignore[misc]
        said.append(tried(stage, 50, hook.storage(stage.storage)))  # type: ignore[arg-type]
        if not hook.has_happened:
            break
        assert sum(one == "written" for one in said) <= 1, said
        stage.clock.advance(DEAD_AFTER_MS)
        assert tried(stage, 70) in ("written", "repeated")
        assert keys(stage) == ["a"]
        outcomes |= set(said)
    assert outcomes >= {"written", "repeated", "stream_busy"}


def tried(world: CrashedTable, seed: int, storage: MemoryStorage | None = None) -> str:
    try:
        commit = world.table(seed, storage).insert(rows("a"), stream=("s", 0))
    except Conflict as error:
        return error.code
    return "repeated" if commit.is_repeated else "written"


def test_a_forgotten_stream_begins_anew(world: CrashedTable) -> None:
    filled(world, 2)
    assert client(world).forget_stream("s", dry_run=True).batch == 1
    assert len(client(world).streams()) == 1
    assert client(world).forget_stream("s").batch == 1
    assert len(client(world).streams()) == 0
    assert not client(world).upsert(rows("k1"), stream=("s", 1)).is_repeated
    assert [one.batch for one in client(world).streams()] == [1]


def test_a_stream_that_is_not_there_cannot_be_forgotten(world: CrashedTable) -> None:
    filled(world, 1)
    assert "'s'" in refused("unknown_stream", lambda: client(world).forget_stream("t")).why


def test_a_stream_is_not_forgotten_under_the_hands_of_its_writer(world: CrashedTable) -> None:
    said: list[str] = []

    def forget() -> None:
        try:
            client(world).forget_stream("s")
        except LakewardenError as error:
            said.append(error.code)

    hook = Hook(1, forget, of=("create_exclusive", f"{stream_folder('s')}/000000001.json"))
    world.table(50, hook.storage(world.storage)).upsert(rows("a"), stream=("s", 0))
    assert said == ["instant_held"]
    assert keys(world) == ["a"]


def test_a_batch_is_never_there_without_the_one_before_it() -> None:
    """Whatever call of its write, up to `publish`, that one is rolled back at: it is a conflict."""
    before, outcomes = new_world(replace(SHAPE, is_partitioned=True), ()), set()
    client(before).upsert(rows("x"))
    filled(before, 1)
    newest = client(before).timeline().completed()[-1].requested
    for at in range(1, 11):
        stage = before.copy()
        hook = Hook(at, lambda stage=stage: client(stage).rollback(newest))  # type: ignore[misc]
        table = stage.table(next(_SEEDS), hook.storage(stage.storage))
        with suppress(LakewardenError):
            table.upsert(rows("k1", partition="b"), stream=("s", 1))
            outcomes.add("written")
        assert keys(stage) == ["x"], at
    assert not outcomes


def test_a_batch_that_comes_again_is_an_event(world: CrashedTable) -> None:
    filled(world, 1)
    log = EventLog()
    own = replace(ports(world.clock, next(_SEEDS)), events=log)
    Table.on(world.storage, own).upsert(rows("k0"), stream=("s", 0))
    assert [one.name for one in log.events if one.name.startswith("stream")] == [
        "stream_batch_repeated"
    ]


def test_what_a_batch_did_is_an_event_with_its_figures(world: CrashedTable) -> None:
    log = EventLog()
    own = replace(ports(world.clock, next(_SEEDS)), events=log)
    Table.on(world.storage, own).upsert(rows("a", "b"), stream=("s", 0))
    (event,) = log.named("stream_batch")
    assert (event.figures["rows"], event.figures["inserted"], event.figures["batch"]) == (2, 2, 0)
    assert "find keys" in str(event.figures["phases"])


@pytest.mark.parametrize("kind", ["mor", "cow"])
def test_deletes_among_upserts_count_by_their_order(kind: str) -> None:
    """Those that come late delete nothing, and of one key in a batch the newest row counts."""
    world = new_world(replace(SHAPE, type=kind), ())
    client(world).upsert(rows("late", "newer", ts=5))
    feed = [("late", 4, True), ("newer", 6, True), ("gone", 3, False), ("gone", 5, True)]
    feed += [("back", 3, True), ("back", 5, False)]
    changed = pa.concat_tables([rows(key, ts=ts) for key, ts, _ in feed])
    is_delete = pa.chunked_array([[one[2] for one in feed]])
    client(world).write(apply_changes(changed, is_delete), stream=("s", 0))
    assert keys(world) == ["back", "late"]
