"""Which rows are one row is a fact of the table: no write, session or environment changes it."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.identity import SCOPE_KEY
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.write.request import Incoming, WriteRequest

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
TYPE, COUNT = "hoodie.index.type", "hoodie.bucket.index.num.buckets"
FIELDS = "hoodie.bucket.index.hash.field"
BUCKETS: Mapping[str, object] = {TYPE: "BUCKET", COUNT: 2}
ROWS_COUNT = 60


@pytest.fixture
def storage() -> MemoryStorage:
    return fresh_memory_storage()


def create(storage: MemoryStorage, properties: Mapping[str, object], **options: object) -> Table:
    given: dict[str, object] = {"key": ["id"], "partition": ["p"], **options}
    return Table.create("", SCHEMA, properties=properties, storage=storage, **given)  # type: ignore[arg-type]


def rows(version: int, count: int = ROWS_COUNT) -> list[dict[str, object]]:
    return [{"id": f"k{number}", "p": "ab"[number % 2], "v": version} for number in range(count)]


def refusal(table: Table, options: Mapping[str, object]) -> LakewardenError:
    with pytest.raises(LakewardenError) as refused:
        table.upsert(rows(9), options)
    return refused.value


def check_once(table: Table, version: int) -> None:
    """Every key is there once, and of that version."""
    read = table.read_arrow(["id", "v"]).to_pylist()
    assert sorted(row["id"] for row in read) == sorted(str(row["id"]) for row in rows(version))
    assert {row["v"] for row in read} == {version}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(
    ("first", "other"),
    [
        (BUCKETS, {COUNT: 3}),
        ({**BUCKETS, COUNT: 3}, {COUNT: 2}),
        (BUCKETS, {TYPE: "SIMPLE"}),
        (BUCKETS, {TYPE: "GLOBAL_SIMPLE"}),
        ({TYPE: "BUCKET"}, {COUNT: 3}),
        ({TYPE: "SIMPLE"}, BUCKETS),
        ({}, BUCKETS),
        ({}, {TYPE: "GLOBAL_BLOOM"}),
        ({}, {TYPE: "RECORD_INDEX"}),
        ({TYPE: "GLOBAL_SIMPLE"}, {TYPE: "BLOOM"}),
        ({TYPE: "RECORD_INDEX"}, {TYPE: "SIMPLE"}),
    ],
)
def test_a_write_that_would_take_other_rows_for_one_row_is_refused(
    table_type: str,
    first: Mapping[str, object],
    other: Mapping[str, object],
    storage: MemoryStorage,
) -> None:
    table = create(storage, first, type=table_type)
    table.upsert(rows(1, ROWS_COUNT // 2))
    assert refusal(table, other).code == "other_identity"
    table.upsert(rows(2))
    check_once(table, 2)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({TYPE: "SIMPLE"}, {TYPE: "BLOOM"}),
        ({}, {TYPE: "BLOOM"}),
        ({}, {TYPE: "RECORD_LEVEL_INDEX"}),
        ({TYPE: "GLOBAL_SIMPLE"}, {TYPE: "GLOBAL_BLOOM"}),
        ({TYPE: "RECORD_INDEX"}, {TYPE: "GLOBAL_SIMPLE"}),
        (BUCKETS, BUCKETS),
        (BUCKETS, {FIELDS: "id"}),
        ({TYPE: "SIMPLE"}, {COUNT: 7}),
    ],
)
def test_a_setting_that_is_equal_in_effect_passes(
    first: Mapping[str, object], other: Mapping[str, object], storage: MemoryStorage
) -> None:
    table = create(storage, first)
    table.upsert(rows(1))
    table.upsert(rows(2), other)
    check_once(table, 2)


def test_without_partitions_both_scopes_are_one(storage: MemoryStorage) -> None:
    table = create(storage, {TYPE: "SIMPLE"}, partition=[])
    table.upsert(rows(1))
    table.upsert(rows(2), {TYPE: "GLOBAL_SIMPLE"})
    check_once(table, 2)


def test_a_session_that_would_change_the_table_is_named(memory_path: str) -> None:
    table = Table.create(memory_path, SCHEMA, key=["id"], properties=BUCKETS)
    table.upsert(rows(1))
    refused = refusal(Table(memory_path, session={TYPE: "SIMPLE"}), {})
    assert (refused.code, refused.origin) == ("other_identity", "session")
    table.upsert(rows(2))
    check_once(Table(memory_path, session={TYPE: "BUCKET"}), 2)


def test_the_environment_has_no_say_in_what_a_table_is(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, plain = create(storage, BUCKETS), create(fresh_memory_storage(), {})
    for table in (counted, plain):
        table.upsert(rows(1))
    monkeypatch.setenv("HOODIE_BUCKET_INDEX_NUM_BUCKETS", "5")
    counted.upsert(rows(2))
    check_once(counted, 2)
    monkeypatch.setenv("HOODIE_INDEX_TYPE", "BUCKET")
    assert refusal(plain, {}).origin == "environment"


def test_what_the_first_write_says_of_a_table_without_a_named_index_is_kept(
    storage: MemoryStorage,
) -> None:
    table = create(storage, {})
    table.upsert(rows(1), {**BUCKETS, COUNT: 3})
    assert refusal(table, {COUNT: 2}).code == "other_identity"
    assert refusal(table, {TYPE: "SIMPLE"}).code == "other_identity"
    table.upsert(rows(2))
    check_once(table, 2)


def test_of_a_named_index_the_first_write_changes_nothing(storage: MemoryStorage) -> None:
    assert refusal(create(storage, BUCKETS), {COUNT: 3}).code == "other_identity"


def test_a_write_that_began_before_the_index_was_set_gives_way(storage: MemoryStorage) -> None:
    table = create(storage, {})

    def overtaken(state: Snapshot) -> Incoming:
        """Rows that are made while another writer says what the table is."""
        if not state.timeline.active.completed():
            table.upsert(rows(1), BUCKETS)
        return Incoming(pa.Table.from_pylist(rows(2), schema=SCHEMA))

    request = WriteRequest(operation=Operation.UPSERT, incoming=overtaken)
    with pytest.raises(Conflict) as lost:
        table.write(request)
    assert lost.value.code == "write_conflict"
    check_once(table, 1)
    table.write(request)
    check_once(table, 2)


def test_reads_and_writes_of_a_table_that_says_what_it_is_cost_nothing_more(
    storage: MemoryStorage,
) -> None:
    table = create(storage, BUCKETS)
    table.upsert(rows(1))
    before = storage.read(".hoodie/hoodie.properties")
    table.upsert(rows(2))
    assert storage.read(".hoodie/hoodie.properties") == before


@pytest.mark.parametrize(
    ("first", "index"),
    [
        ({TYPE: "SIMPLE"}, "BLOOM"),
        ({TYPE: "SIMPLE"}, "RECORD_LEVEL_INDEX"),
        ({}, "GLOBAL_SIMPLE"),
        ({TYPE: "GLOBAL_SIMPLE"}, "SIMPLE"),
        (BUCKETS, "BUCKET"),
    ],
)
def test_the_index_is_set_as_far_as_the_rows_allow(
    first: Mapping[str, object], index: str, storage: MemoryStorage
) -> None:
    table = create(storage, first)
    table.upsert(rows(1))
    assert not table.set_index(index, dry_run=True).is_changed
    assert table.set_index(index).index == index
    table.upsert(rows(2), {TYPE: index})
    check_once(table, 2)


@pytest.mark.parametrize(
    ("first", "index", "options"),
    [
        ({TYPE: "SIMPLE"}, "BUCKET", {}),
        (BUCKETS, "SIMPLE", {}),
        (BUCKETS, "BUCKET", {COUNT: 3}),
    ],
)
def test_buckets_come_and_go_with_their_rows_only(
    first: Mapping[str, object], index: str, options: dict[str, object], storage: MemoryStorage
) -> None:
    table = create(storage, first)
    table.set_index(index, options)
    table.set_index(str(first[TYPE]), {COUNT: first.get(COUNT, 1)})
    table.upsert(rows(1))
    with pytest.raises(LakewardenError) as refused:
        table.set_index(index, options)
    assert refused.value.code == "index_needs_rewrite"
    table.upsert(rows(2))
    check_once(table, 2)


def test_keys_in_two_partitions_are_never_made_one_row(storage: MemoryStorage) -> None:
    table = create(storage, {})
    table.upsert([{"id": "k", "p": "a", "v": 1}, {"id": "k", "p": "b", "v": 2}])
    for change in (table.set_index, table.create_index):
        name = "GLOBAL_SIMPLE" if change == table.set_index else "record_index"
        with pytest.raises(LakewardenError) as refused:
            change(name)
        assert refused.value.code == "repeated_keys"
    assert table.read_arrow().num_rows == 2


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("drops_all", [True, False])
def test_keys_stay_unique_in_the_table_when_its_record_index_is_dropped(
    storage: MemoryStorage, *, is_recorded: bool, drops_all: bool
) -> None:
    table = create(storage, {}, indexes=["record_index"])
    table.upsert([{"id": "k", "p": "a", "v": 1}])
    if not is_recorded:
        # As Java's tables are, and those from before it was recorded.
        update_properties(storage, {SCOPE_KEY: None})
    if drops_all:
        table.delete_metadata_table()
    else:
        table.drop_index("record_index")
    table.upsert([{"id": "k", "p": "b", "v": 2}])
    assert table.read_arrow(["v"]).to_pylist() == [{"v": 2}]


def test_keys_are_unique_in_the_table_once_an_index_of_all_is_built(
    storage: MemoryStorage,
) -> None:
    table = create(storage, {})
    table.upsert([{"id": "k", "p": "a", "v": 1}])
    table.create_index("record_index")
    table.upsert([{"id": "k", "p": "b", "v": 2}])
    assert table.read_arrow(["v"]).to_pylist() == [{"v": 2}]
    table.delete_metadata_table()
    table.upsert([{"id": "k", "p": "c", "v": 3}])
    assert table.read_arrow(["v"]).to_pylist() == [{"v": 3}]


def test_a_key_does_not_come_to_two_partitions_under_an_index_of_all_keys(
    storage: MemoryStorage,
) -> None:
    table = create(storage, BUCKETS)
    table.upsert([{"id": "k", "p": "a", "v": 1}])
    table.create_index("record_index")
    for ids in ("k", "nn"):
        with pytest.raises(LakewardenError) as refused:
            table.upsert([{"id": key, "p": p, "v": 1} for key, p in zip(ids, "bc", strict=False)])
        assert refused.value.code == "key_in_other_partition"
    table.upsert([{"id": "k", "p": "a", "v": 2}, {"id": "n", "p": "b", "v": 2}])
    table.overwrite([{"id": "k", "p": "b", "v": 3}])
    assert table.lookup(["k"], ["v"]).to_pylist() == [{"v": 3}]
    assert not [one for one in table.validate() if str(one.finding.verdict) == "failed"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_overwrite_of_a_partition_brings_no_key_that_lives_in_another(
    kind: str, storage: MemoryStorage
) -> None:
    table = create(storage, {}, index="RECORD_INDEX", type=kind)
    table.upsert([{"id": "k", "p": "a", "v": 1}, {"id": "n", "p": "b", "v": 1}])
    with pytest.raises(LakewardenError) as refused:
        table.overwrite_partitions([{"id": "k", "p": "b", "v": 2}])
    assert refused.value.code == "key_in_other_partition"
    table.overwrite_partitions([{"id": "n", "p": "b", "v": 2}, {"id": "new", "p": "b", "v": 2}])
    table.upsert([{"id": "k", "p": "b", "v": 3}])
    assert table.lookup(["k"], ["v"]).to_pylist() == [{"v": 3}]
    assert not [one for one in table.validate() if str(one.finding.verdict) == "failed"]


def test_a_record_index_beside_writes_within_partitions_is_made_for_each(
    storage: MemoryStorage,
) -> None:
    table = create(storage, BUCKETS, indexes=["record_index"])
    assert table.lookup(["k"]).num_rows == 0
    table.upsert([{"id": "k", "p": "a", "v": 1}, {"id": "k", "p": "b", "v": 2}])
    for _ in range(2):
        assert table.lookup(["k"]).num_rows == 2
        assert not [one for one in table.validate() if str(one.finding.verdict) == "failed"]
        table.delete_metadata_table()
        table.create_metadata_table()


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_rows_that_move_go_to_the_buckets_of_their_partition(
    table_type: str, storage: MemoryStorage
) -> None:
    table = create(storage, BUCKETS, type=table_type)
    table.upsert(rows(1))
    table.update_where([("p", "=", "a")], {"p": "b"})
    table.upsert([{**row, "p": "b", "v": 2} for row in rows(2)])
    check_once(table, 2)
    ids = [slice_.file_id[:8] for slice_ in table.file_slices("p=b")]
    assert sorted(ids) == ["00000000", "00000001"]
