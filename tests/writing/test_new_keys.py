"""Two writers bring one new key: the one that commits second gives way, whatever the index."""

from collections.abc import Callable
from typing import Any

import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.index.key_check import FILES_MAX
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.commit import TURNS_MAX
from tests.engine.transaction.just_before import JustBefore
from tests.sampling import sample
from tests.writing.rivals import OnceFound
from tests.writing.shapes import Shape, all_shapes, pairwise_shapes

AGAIN = {"hoodie.write.num.retries.on.conflict.failures": 1}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
GLOBAL = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")
OLD = {"id": "old", "p": "a", "ts": 1, "v": 0.0, "name": "n"}

Row = dict[str, Any]


def row(key: str = "k", **others: object) -> Row:
    return {"id": key, "p": "a", "ts": 1, "v": 1.0, "name": "n", **others}


def started(shape: Shape, **more: object) -> MemoryStorage:
    """A table with one row."""
    storage = fresh_memory_storage()
    shape.create("", storage=storage).upsert([OLD], MOVES)
    return storage


def racing(storage: Storage, rival: Callable[[], object], times: int = 1) -> Table:
    """A writer beside which somebody else commits between its look for keys and its files."""
    return Table.on(storage, Ports(events=OnceFound(rival, times)))


def shown(storage: Storage) -> list[tuple[str, str, float]]:
    rows = Table.on(storage).read_arrow(["id", "p", "v"]).to_pylist()
    return sorted((one["id"], one["p"], one["v"]) for one in rows if one["id"] != "old")


def failures(storage: Storage) -> list[str]:
    return [
        f"{one.check}: {one.finding.detail}"
        for one in Table.on(storage).validate()
        if one.finding.verdict == "failed"
    ]


BY_EVENT = [one for one in all_shapes() if one.is_event_time]


@pytest.mark.parametrize("shape", sample(BY_EVENT, 5), ids=str)
def test_the_second_of_two_writers_of_one_new_key_gives_way(shape: Shape) -> None:
    storage = started(shape)
    other = Table.on(storage)
    # Indexes over all partitions know a key wherever it is.
    place = "b" if shape.is_partitioned and shape.index in GLOBAL else "a"
    table = racing(storage, lambda: other.upsert([row(p=place, v=2.0)], MOVES))
    with pytest.raises(Conflict) as caught:
        table.upsert([row()], MOVES)
    assert caught.value.code == "write_conflict"
    assert shown(storage) == [("k", place, 2.0)]
    assert failures(storage) == []


@pytest.mark.parametrize("shape", pairwise_shapes(), ids=str)
def test_a_writer_that_tries_again_updates_what_the_first_has_brought(shape: Shape) -> None:
    storage = started(shape)
    other = Table.on(storage)
    table = racing(storage, lambda: other.upsert([row(v=2.0)], MOVES))
    table.upsert([row(ts=2)], {**MOVES, **AGAIN})
    assert shown(storage) == [("k", "a", 1.0)]
    assert failures(storage) == []


@pytest.mark.parametrize("shape", pairwise_shapes(), ids=str)
def test_a_delete_of_a_key_that_another_has_brought_meanwhile_gives_way(shape: Shape) -> None:
    storage = started(shape)
    other = Table.on(storage)
    table = racing(storage, lambda: other.upsert([row(v=2.0)], MOVES))
    with pytest.raises(Conflict):
        table.delete(["k"])
    assert shown(storage) == [("k", "a", 2.0)]
    racing(storage, lambda: other.upsert([row("j")], MOVES)).delete(["i"])
    assert shown(storage) == [("j", "a", 1.0), ("k", "a", 2.0)]


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "RECORD_LEVEL_INDEX"])
def test_equal_keys_of_two_partitions_are_two_rows_to_an_index_within_partitions(
    index: str,
) -> None:
    storage = started(Shape("mor", index=index))
    other = Table.on(storage)
    table = racing(storage, lambda: other.upsert([row(p="b")]))
    table.upsert([row(p="c")])
    assert [place for _, place, _ in shown(storage)] == ["b", "c"]


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "overwrite_partitions"])
def test_an_upsert_sees_the_keys_of_writes_that_look_for_none(operation: str, index: str) -> None:
    storage = started(Shape("mor", index=index))
    other = Table.on(storage)
    table = racing(storage, lambda: getattr(other, operation)([row(p="b", v=2.0)]))
    with pytest.raises(Conflict, match="inserted the record key 'k'"):
        table.upsert([row(p="b")])


def test_plain_inserts_take_rows_for_new_without_a_look() -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    table = racing(storage, lambda: other.upsert([row(v=2.0)]))
    table.insert([row(v=3.0)])
    assert [value for *_, value in shown(storage)] == [2.0, 3.0]


@pytest.mark.parametrize("operation", ["overwrite", "overwrite_partitions"])
def test_what_takes_the_place_of_partitions_doubles_no_key_of_an_upsert(operation: str) -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    table = racing(storage, lambda: other.upsert([row(v=2.0)]), times=1)
    getattr(table, operation)([row(v=3.0)], AGAIN)
    assert shown(storage) == [("k", "a", 3.0)]


def test_a_row_that_moves_brings_its_key_to_the_other_partition() -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    table = racing(storage, lambda: other.update_where([("id", "=", "old")], {"p": "b"}))
    with pytest.raises(Conflict, match="inserted the record key 'old'"):
        table.upsert([row("old", p="b")])


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX"])
def test_services_bring_no_keys(index: str) -> None:
    storage = started(Shape("mor", index=index))
    other = Table.on(storage)
    other.upsert([{**OLD, "ts": 2}])

    def serve() -> None:
        other.compaction.schedule_and_run()
        other.upsert([row("more", p="b")])
        other.clustering.schedule_and_run()

    racing(storage, serve).upsert([row(p="c")])
    assert [key for key, *_ in shown(storage)] == ["k", "more"]
    assert failures(storage) == []


def test_of_three_writers_each_gives_way_to_those_before() -> None:
    storage = started(Shape("mor"))
    third = Table.on(storage)
    second = racing(storage, lambda: third.upsert([row(v=3.0)]))
    first = racing(storage, lambda: second.upsert([row(ts=2, v=2.0)], AGAIN))
    first.upsert([row(ts=3)], AGAIN)
    assert shown(storage) == [("k", "a", 1.0)]


def test_a_conflict_at_each_try_is_raised_in_the_end() -> None:
    storage = started(Shape("mor"))
    other, keys = Table.on(storage), iter("klm")
    table = racing(storage, lambda: other.insert([row(next(keys))]), times=3)
    with pytest.raises(Conflict, match="'l'"):
        table.upsert([row("k"), row("l"), row("m")], AGAIN)


def test_files_that_are_gone_and_could_tell_keys_are_a_conflict() -> None:
    storage = started(Shape("cow"))
    other = Table.on(storage)

    def rewrite_and_remove() -> None:
        first = other.upsert([row("m", p="b")])
        other.upsert([row("m", p="b", ts=2)])
        for folder in ("b", "p=b"):
            for one in storage.list(folder).files:
                if first.instant in one.name:
                    storage.delete(one.path)

    with pytest.raises(Conflict, match="Files of that commit are gone"):
        racing(storage, rewrite_and_remove).upsert([row(p="b")])


def test_without_the_entries_of_the_index_the_files_say_what_was_brought() -> None:
    storage = started(Shape("mor", index="RECORD_INDEX"))
    other = Table.on(storage)

    def forget() -> None:
        done = other.upsert([row(v=2.0)])
        logs = storage.below(".hoodie/metadata/record_index")
        for entry in logs.list("").files:
            if done.instant in entry.name:
                logs.delete(entry.path)

    with pytest.raises(Conflict, match="inserted the record key 'k'"):
        racing(storage, forget).upsert([row()])


class Meeting:
    """A writer beside which others commit each time that it is about to take the lock."""

    def __init__(self, files: int, *, rounds: int, brings: str = "") -> None:
        self.storage = started(Shape("mor", index="GLOBAL_SIMPLE"))
        self._other = Table.on(self.storage)
        self._files, self._rounds, self._brings = files, rounds, brings
        self.turns = 0

    def upsert(self, key: str) -> None:
        # The first time it publishes its instant.
        storage: Storage = self.storage
        for nth in range(1, self._rounds + 1):
            storage = JustBefore(storage, Ports().clock, self._commit, nth)
        Table.on(storage).upsert([row(key)], {"hoodie.write.lock.provider": "filesystem"})

    def _commit(self) -> None:
        self.turns += 1
        rows = [row(f"{self.turns}-{at}", p=f"p{at}") for at in range(self._files)]
        self._other.insert(rows, small_file_limit=0)
        if self._brings:
            self._other.insert([row(self._brings)], small_file_limit=0)


@pytest.mark.parametrize("files", [1, FILES_MAX + 1])
def test_a_write_beside_commits_of_other_keys_comes_through(files: int) -> None:
    meeting = Meeting(files, rounds=1)
    meeting.upsert("k")
    assert len(shown(meeting.storage)) == files + 1


def test_a_key_is_found_among_more_files_than_are_read_under_the_lock() -> None:
    with pytest.raises(Conflict, match="inserted the record key 'k'"):
        Meeting(FILES_MAX + 1, rounds=1, brings="k").upsert("k")


def test_a_write_whose_turn_never_comes_gives_way() -> None:
    meeting = Meeting(FILES_MAX + 1, rounds=TURNS_MAX)
    with pytest.raises(Conflict, match="could not check the keys"):
        meeting.upsert("k")
    assert meeting.turns == TURNS_MAX
