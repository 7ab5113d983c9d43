"""What a table is that says nothing of its index is told from its files, or refused by name."""

import pyarrow as pa
import pytest

from lakewarden.engine.index.kinds import Buckets, IndexChoice, IndexKind
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.table import Table
from tests.golden_tables import GoldenTable

COUNT = "hoodie.bucket.index.num.buckets"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])


def golden_state(golden: GoldenTable, name: str) -> Snapshot:
    return load_snapshot(open_storage(Location(str(golden(name)))))


def chosen(state: Snapshot, **options: str) -> IndexChoice:
    arguments = {name.replace("__", "."): value for name, value in options.items()}
    return select_index(state, Settings.of(arguments=arguments))


@pytest.mark.parametrize(("name", "count"), [("mor_bucket_simple", 4), ("mor_nbcc", 2)])
def test_the_buckets_of_javas_tables_are_told_from_their_keys(
    name: str, count: int, golden: GoldenTable
) -> None:
    selection = chosen(golden_state(golden, name))
    assert selection == IndexChoice(IndexKind.BUCKET, buckets=Buckets(("id",), count, ("id",)))


def test_a_count_that_javas_keys_contradict_is_refused(golden: GoldenTable) -> None:
    with pytest.raises(LakewardenError) as refused:
        chosen(golden_state(golden, "mor_bucket_simple"), hoodie__bucket__index__num__buckets="5")
    assert refused.value.code == "other_buckets"


def test_another_index_for_javas_buckets_is_refused(golden: GoldenTable) -> None:
    with pytest.raises(LakewardenError) as refused:
        chosen(golden_state(golden, "mor_bucket_simple"), hoodie__index__type="SIMPLE")
    assert refused.value.code == "other_identity"


def test_consistent_hashing_is_told_from_its_files(golden: GoldenTable) -> None:
    with pytest.raises(LakewardenError, match="CONSISTENT_HASHING") as refused:
        chosen(golden_state(golden, "mor_bucket_consistent_hashing"))
    assert refused.value.code == "unsupported_index"


def without_record(count: int, ids: list[str]) -> Snapshot:
    """A table with buckets that says nothing of them, as those of Java's."""
    storage = fresh_memory_storage()
    properties = {"hoodie.index.type": "BUCKET", COUNT: count}
    table = Table.create("", SCHEMA, key=["id"], properties=properties, storage=storage)
    table.upsert([{"id": one, "p": "", "v": 1} for one in ids])
    lines = storage.read(".hoodie/hoodie.properties").decode().splitlines()
    kept = [line for line in lines if not line.startswith("lakewarden.")]
    storage.put(".hoodie/hoodie.properties", "\n".join(kept).encode())
    return load_snapshot(storage)


def test_what_few_keys_leave_open_has_to_be_said() -> None:
    state = without_record(6, ["a"])
    with pytest.raises(LakewardenError) as refused:
        chosen(state)
    assert refused.value.code == "unknown_buckets"
    selection = chosen(state, hoodie__bucket__index__num__buckets="6")
    assert selection.buckets == Buckets(("id",), 6, ("id",))


def test_what_a_write_has_been_told_is_kept_for_the_next_one() -> None:
    state = without_record(7, [f"k{number}" for number in range(200)])
    table = Table.on(state.storage)
    table.upsert([{"id": f"k{number}", "p": "", "v": 2} for number in range(150, 250)])
    assert table.properties[f"lakewarden.setting.{COUNT}"] == "7"
    ids = table.read_arrow(["id"])["id"].to_pylist()
    assert len(ids) == len(set(ids)) == 250


def test_buckets_by_partition_are_refused_by_name() -> None:
    state = without_record(2, ["a", "b", "c"])
    path = ".hoodie/.bucket_index/partition_bucket_index_meta/configs/1.hashing_config"
    state.storage.put(path, b"{}")
    with pytest.raises(LakewardenError, match="by partition") as refused:
        chosen(state)
    assert refused.value.code == "unsupported_index"


@pytest.mark.parametrize("options", [{}, {"hoodie.parquet.small.file.limit": 0}])
def test_rows_outside_their_buckets_are_named_and_one_call_gives_buckets_up(
    options: dict[str, object],
) -> None:
    state = without_record(2, [f"k{number}" for number in range(20)])
    table = Table.on(state.storage)
    # As writers did that took such a table for one without buckets.
    kept = state.storage.read(".hoodie/hoodie.properties")
    state.storage.put(
        ".hoodie/hoodie.properties", kept + b"\nlakewarden.setting.hoodie.index.type=SIMPLE\n"
    )
    table.upsert([{"id": f"k{number}", "p": "", "v": 2} for number in range(30)], options)
    state.storage.put(".hoodie/hoodie.properties", kept)
    with pytest.raises(LakewardenError) as refused:
        table.upsert([{"id": "k1", "p": "", "v": 3}])
    assert refused.value.code == "mixed_file_groups"
    table.set_index("SIMPLE")
    table.upsert([{"id": f"k{number}", "p": "", "v": 3} for number in range(40)])
    ids = table.read_arrow(["id"])["id"].to_pylist()
    assert len(ids) == len(set(ids)) == 40
