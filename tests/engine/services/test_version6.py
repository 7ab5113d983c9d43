"""Tables of version 6: what writes and services leave on disk, and what is refused."""

import json

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import commit, replace
from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.object_store import ObjectStorage
from lakewarden.engine.storage.port import Creation
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action, epoch_ms
from lakewarden.engine.timeline.timeline import MOVED
from tests.engine.transaction.hooked import Hook
from tests.golden_tables import GoldenTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
SIX = {"hoodie.write.table.version": "6"}
ACTIONS = frozenset(Action)


def rows(keys: str, n: int) -> pa.Table:
    found = [{"id": one, "p": "xy"[one > "b"], "ts": n, "n": n} for one in keys]
    return pa.Table.from_pylist(found, SCHEMA)


def made(storage: MemoryStorage, type_: str = "cow", **properties: str) -> Table:
    return Table.create(
        storage.location.uri,
        SCHEMA,
        ["id"],
        ["p"],
        ["ts"],
        type=type_,
        properties=SIX | properties,
        storage=storage,
    )


def numbers(table: Table) -> dict[str, int]:
    return {row["id"]: row["n"] for row in table.read_arrow(["id", "n"]).to_pylist()}


def test_a_write_leaves_what_release_1_2_leaves() -> None:
    storage = fresh_memory_storage()
    table = made(storage)
    table.upsert(rows("abc", 1))
    done = table.upsert(rows("b", 2))
    assert numbers(table) == {"a": 1, "b": 2, "c": 1}
    names = {entry.name for entry in storage.list(".hoodie").files}
    own = {name for name in names if name.startswith(done.instant)}
    assert own == {f"{done.instant}{end}" for end in (".commit.requested", ".inflight", ".commit")}
    entry = storage.stat(f".hoodie/{done.instant}.commit")
    assert entry is not None
    assert entry.modified_ms == epoch_ms(done.completed, UTC)
    said = json.loads(storage.read(entry.path))
    assert said["operationType"] == "UPSERT"
    assert "version" not in said
    (stat,) = said["partitionToWriteStats"]["p=x"]
    assert (stat["numUpdateWrites"], stat["prevCommit"] != "null") == (1, True)
    assert not storage.list(".hoodie/metadata").files


def test_services_keep_a_table_in_shape_as_on_other_versions() -> None:
    table = made(fresh_memory_storage())
    for n in range(6):
        table.upsert(rows("abcdef"[n % 3 :], n))
    before = numbers(table)
    saved = table.savepoint()
    table.upsert(rows("a", 9))
    table.restore(saved.instant)
    assert numbers(table) == before
    table.delete_savepoint(saved.instant)
    plan = table.clustering.schedule()
    assert plan.instant is not None
    (pending,) = table.timeline().pending()
    assert pending.action is Action.CLUSTERING
    path = table.timeline().path(table.timeline().pending()[0])
    assert path == f".hoodie/{plan.instant}.replacecommit.requested"
    table.clustering.run(plan.instant)
    assert numbers(table) == before
    assert table.clean(commits_retained=1)
    archived = table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    assert archived
    known = table.history().timeline.archive
    assert known.instants() == archived.instants
    for row in known.rows(ACTIONS):
        assert row.metadata
    assert numbers(table) == before


def test_an_archived_instant_says_what_its_files_said() -> None:
    storage = fresh_memory_storage()
    table = made(storage)
    first = table.upsert(rows("ab", 1)).instant
    second = table.overwrite_partitions(rows("a", 2)).instant
    for n in range(4):
        table.upsert(rows("c", n))
    was_first = commit.decode(storage.read(f".hoodie/{first}.commit"), "p")
    was_second = replace.decode(storage.read(f".hoodie/{second}.replacecommit"), "p")
    table.clean(commits_retained=1)
    assert table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    found = {row.instant.requested: row for row in table.history().timeline.archive.rows(ACTIONS)}
    assert commit.decode(found[first].metadata or b"", "p") == was_first
    assert replace.decode(found[second].metadata or b"", "p") == was_second
    said = commit.decode(found[second].plan or b"", "p")
    assert said.operation_type == "INSERT_OVERWRITE"


class DyingBeforePublication(FaultyStorage):
    """Its process dies when an instant has committed and nobody sees it yet."""

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        if path.endswith(".commit"):
            raise Crashed(path)
        return super().create_dated(path, payload, modified_ms)


def test_what_has_committed_is_published_with_its_own_completion_time() -> None:
    storage = fresh_memory_storage()
    made(storage).upsert(rows("ab", 1))
    with pytest.raises(Crashed):
        Table.on(DyingBeforePublication(storage)).upsert(rows("a", 2))
    table = Table.on(storage)
    assert numbers(table) == {"a": 1, "b": 1}
    (pending,) = table.timeline().pending()
    decided = table.ledger(pending.requested)[-1].completion_time
    table.upsert(rows("b", 3))
    assert numbers(table) == {"a": 2, "b": 3}
    (published,) = table.timeline().with_time(pending.requested)
    assert published.completed == decided


class Undated(MemoryStorage):
    """A storage that gives files times of its own."""

    has_file_times = False


def test_what_would_need_more_than_is_written_is_refused(golden_copy: GoldenTable) -> None:
    storage = fresh_memory_storage()
    with pytest.raises(InvalidRequest, match="does not write this table of version 6"):
        made(storage, "mor")
    assert not storage.walk("")
    table = made(fresh_memory_storage())
    table.upsert(rows("a", 1))
    for build in (table.create_metadata_table, lambda: table.create_index("column_stats")):
        with pytest.raises(InvalidRequest, match="no metadata table for a table of version 6"):
            build()
    assert numbers(table) == {"a": 1}
    storage = fresh_memory_storage()
    storage.__class__ = Undated
    with pytest.raises(InvalidRequest) as refused:
        made(storage).upsert(rows("a", 1))
    assert refused.value.code == "unsupported_file_times"
    assert not ObjectStorage.has_file_times
    table = Table(str(golden_copy("v6_cow_archived")))
    with pytest.raises(InvalidRequest, match=r"Write with hoodie\.metadata\.enable=false"):
        table.delete(["1"])


def test_a_golden_table_is_written_once_its_metadata_table_is_gone(
    golden_copy: GoldenTable,
) -> None:
    table = Table(str(golden_copy("v6_cow_archived")))
    before = numbers(table)
    archived = table.history().timeline.archive.instants()
    key = min(before)
    row = table.read_arrow(filter=[("id", "=", key)]).to_pylist()[0]
    own = {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
    table.upsert([{**own, "ts": 10**15, "n": 777}], {"hoodie.metadata.enable": "false"})
    assert not table.config.metadata_partitions
    assert numbers(table) == before | {key: 777}
    table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    now = table.history().timeline.archive.instants()
    assert now[: len(archived)] == archived
    assert len(now) > len(archived)


def served(table: Table) -> None:
    """Some of everything on a timeline, active and archived."""
    for n in range(5):
        table.upsert(rows("abcdef"[n % 3 :], n))
    table.overwrite_partitions(rows("a", 5))
    table.clean(commits_retained=1)
    table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    table.savepoint()
    table.upsert(rows("ab", 6))


def told(table: Table) -> list[tuple[str, ...]]:
    """All instants of a table, with what they say of file groups."""
    history = table.history().timeline
    found = [(row.instant, row.metadata or b"") for row in history.archive.rows(ACTIONS)][::-1]
    found += [(one, table.timeline().read(one)) for one in table.timeline().completed()]
    return [
        (
            one.requested,
            str(one.completed),
            one.action.value,
            ",".join(sorted(commit.decode(content, "p").partition_to_write_stats)),
        )
        for one, content in found
        if one.action.is_write
    ]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_table_goes_to_version_6_and_back_with_all_of_its_history(type_: str) -> None:
    storage = fresh_memory_storage()
    table = made(storage, type_, **{"hoodie.write.table.version": "9"})
    served(table)
    if type_ == "mor":
        with pytest.raises(InvalidRequest, match="The table has logs"):
            table.change_version(6)
        assert not any(one.log_files for one in table.file_slices())
        table.delete_savepoint(table.savepoints()[0].instant)
        table.clean(policy="KEEP_LATEST_FILE_VERSIONS", fileversions_retained=1)
    before, history, saved = numbers(table), told(table), table.savepoints()
    properties = dict(table.properties)
    assert table.change_version(6, dry_run=True).dropped == table.config.metadata_partitions
    assert table.change_version(6).is_changed
    assert (numbers(table), table.savepoints()) == (before, saved)
    assert told(table) == history
    assert [one.name for one in storage.list(".hoodie/timeline").files] == [MOVED]
    assert not storage.walk(".hoodie/timeline/history")
    assert not table.config.metadata_partitions
    assert table.properties["hoodie.table.keygenerator.class"].endswith(".SimpleKeyGenerator")
    if type_ == "cow":
        table.upsert(rows("b", 7))
        before["b"], history = 7, told(table)
    assert table.change_version(9).is_changed
    assert (numbers(table), told(table)) == (before, history)
    assert not [one for one in storage.list(".hoodie").files if one.name[0].isdigit()]
    assert not storage.walk(".hoodie/archived")
    assert "column_stats" in table.config.metadata_partitions
    differing = {key for key, value in properties.items() if table.properties.get(key) != value}
    assert differing <= {
        "hoodie.table.initial.version",
        "hoodie.table.checksum",
        "hoodie.compaction.payload.class",
    }
    table.upsert(rows("c", 8))
    assert numbers(table) == before | {"c": 8}


@pytest.mark.parametrize("versions", [(9, 6), (6, 9)])
def test_a_reader_never_takes_a_timeline_that_moves_for_an_empty_table(
    versions: tuple[int, int],
) -> None:
    at, is_over = 1, False
    while not is_over:
        storage = fresh_memory_storage()
        table = made(storage)
        table.upsert(rows("abc", 1))
        table.savepoint()
        table.change_version(versions[0])
        hook = Hook(at, lambda table=table: table.change_version(versions[1]))
        reader = Table.on(hook.storage(storage))
        assert numbers(reader) == {"a": 1, "b": 1, "c": 1}
        assert len(reader.savepoints()) == 1
        at, is_over = at + 1, not hook.has_happened
    assert at > 5


def there_and_back(table: Table) -> None:
    table.change_version(8)
    table.change_version(6)


def test_who_dies_while_the_version_changes_leaves_one_of_both_and_may_call_again() -> None:
    rehearsed = fresh_memory_storage()
    served(made(rehearsed))
    rehearsal = FaultyStorage(rehearsed)
    there_and_back(Table.on(rehearsal))
    plans = list(crash_plans(rehearsal.calls))
    for plan in plans[:: len(plans) // 4]:
        storage = fresh_memory_storage()
        served(made(storage))
        before, history = numbers(Table.on(storage)), told(Table.on(storage))
        dying = FaultyStorage(storage, plan)
        with pytest.raises(Crashed):
            there_and_back(Table.on(dying))
        table = Table.on(storage)
        assert numbers(table) == before
        assert [one[:1] + one[2:] for one in told(table)] == [one[:1] + one[2:] for one in history]
        table.change_version(9)
        assert numbers(table) == before
        assert len(told(table)) == len(history)
        table.upsert(rows("b", 9))
        assert numbers(table) == before | {"b": 9}


def as_of(table: Table, moment: str) -> list[str]:
    return sorted(map(str, table.read_arrow(["id", "n", "ts"], as_of=moment).to_pylist()))


def test_golden_tables_of_version_6_are_upgraded(golden_copy: GoldenTable) -> None:
    table = Table(str(golden_copy("v6_cow_archived")))
    before, history = numbers(table), told(table)
    table.change_version(9)
    assert numbers(table) == before
    assert [one[:1] + one[2:] for one in told(table)] == [one[:1] + one[2:] for one in history]
    assert table.timeline().layout.version == 2
    key = min(before)
    row = table.read_arrow(filter=[("id", "=", key)]).to_pylist()[0]
    own = {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
    table.upsert([{**own, "ts": 10**15, "n": 777}])
    assert numbers(table) == before | {key: 777}
    table = Table(str(golden_copy("v6_mor")))
    before = numbers(table)
    assert any(one.log_files for one in table.file_slices())
    seen = [as_of(table, one.requested) for one in table.timeline().completed()]
    table.change_version(8)
    assert numbers(table) == before
    assert not any(one.log_files for one in table.file_slices())
    *writes, folded = table.timeline().completed()
    files = table.timeline().files_of(folded)
    assert files is not None
    assert files.started_as is Action.COMPACTION
    assert [as_of(table, one.requested) for one in writes] == seen
    # Nor can a write be taken out of logs that it shares with others.
    assert table.rollback(folded.requested)
    assert numbers(table) == before
    with pytest.raises(InvalidRequest, match="may hold rows of other"):
        table.rollback(writes[-1].requested)
    with pytest.raises(InvalidRequest, match="may hold rows of other"):
        table.restore(writes[0].requested)
    assert numbers(table) == before


def test_nothing_is_compacted_while_a_write_of_version_6_is_under_way(
    golden_copy: GoldenTable,
) -> None:
    table = Table(str(golden_copy("v6_mor")))
    table.delete_metadata_table()
    before = table.timeline().instants
    for state in ("requested", "inflight"):
        table.state().storage.put(f".hoodie/20301118131330000.deltacommit.{state}", b"")
    with pytest.raises(Conflict, match="The deltacommit 20301118131330000 has not ended"):
        table.change_version(9)
    assert table.timeline().instants[:-1] == before
    assert table.config.version == 6


def test_what_an_earlier_change_has_left_is_no_part_of_the_new_timeline() -> None:
    storage = fresh_memory_storage()
    table = made(storage)
    table.upsert(rows("ab", 1))
    table.change_version(8)
    storage.put(".hoodie/20200101000000000.commit", commit.encode_json(commit.CommitMetadata()))
    table.change_version(6)
    assert len(table.timeline().instants) == 1
    assert numbers(table) == {"a": 1, "b": 1}
