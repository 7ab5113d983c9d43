"""The index of a write follows Hudi's options, and without any what the table has."""

import pytest

from lakewarden.engine.index.kinds import Buckets, IndexChoice, IndexKind
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.engine.index.small_tables import SmallTable
from tests.golden_tables import GoldenTable


def chosen(state: Snapshot, **options: str) -> IndexChoice:
    arguments = {name.replace("__", "."): value for name, value in options.items()}
    return select_index(state, Settings.of(arguments=arguments))


def golden_state(golden: GoldenTable, name: str) -> Snapshot:
    return load_snapshot(open_storage(Location(str(golden(name)))))


def test_without_options_keys_are_read_from_the_files() -> None:
    assert chosen(SmallTable().state()) == IndexChoice(IndexKind.SIMPLE)


def test_without_options_the_tables_global_record_index_is_used(golden: GoldenTable) -> None:
    state = golden_state(golden, "mor_record_index_global")
    assert chosen(state) == IndexChoice(IndexKind.GLOBAL_RECORD_INDEX)


def test_without_options_the_tables_partitioned_record_index_is_used(golden: GoldenTable) -> None:
    state = golden_state(golden, "cow_record_index_partitioned")
    assert chosen(state) == IndexChoice(IndexKind.RECORD_INDEX)


@pytest.mark.parametrize(
    ("asked", "used"), [("RECORD_INDEX", "GLOBAL_SIMPLE"), ("RECORD_LEVEL_INDEX", "SIMPLE")]
)
def test_a_record_index_that_is_missing_is_replaced_by_reading_keys(asked: str, used: str) -> None:
    selection = chosen(SmallTable().state(), hoodie__index__type=asked)
    assert selection.kind is IndexKind(used)
    assert selection.instead_of is not None


def test_a_record_index_of_the_other_kind_is_refused(golden: GoldenTable) -> None:
    state = golden_state(golden, "cow_record_index_partitioned")
    with pytest.raises(InvalidRequest) as refused:
        chosen(state, hoodie__index__type="RECORD_INDEX")
    assert refused.value.code == "other_record_index"


@pytest.mark.parametrize(
    ("kind", "moves"),
    [("SIMPLE", False), ("GLOBAL_SIMPLE", True), ("GLOBAL_BLOOM", True), ("RECORD_INDEX", False)],
)
def test_keys_move_by_default_where_they_do_in_hudi(kind: str, *, moves: bool) -> None:
    assert chosen(SmallTable().state(), hoodie__index__type=kind).moves is moves


def test_moving_keys_can_be_switched_off() -> None:
    selection = chosen(
        SmallTable().state(),
        hoodie__index__type="GLOBAL_SIMPLE",
        hoodie__simple__index__update__partition__path="false",
    )
    assert selection.moves is False


def test_nothing_moves_in_a_table_without_partitions() -> None:
    table = SmallTable(hoodie__table__partition__fields="")
    assert chosen(table.state(), hoodie__index__type="GLOBAL_SIMPLE").moves is False


def test_a_bucket_index_hashes_the_whole_key_by_default() -> None:
    selection = chosen(SmallTable().state(), hoodie__index__type="BUCKET")
    assert selection.buckets == Buckets(("id",), 256, ("id",))


def test_consistent_hashing_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="CONSISTENT_HASHING") as refused:
        chosen(
            SmallTable().state(),
            hoodie__index__type="BUCKET",
            hoodie__index__bucket__engine="CONSISTENT_HASHING",
        )
    assert refused.value.code == "unsupported_index"


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie__bucket__index__hash__field": "ts"},
        {"hoodie__bucket__index__num__buckets": "0"},
    ],
)
def test_buckets_that_cannot_be_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chosen(SmallTable().state(), hoodie__index__type="BUCKET", **options)
    assert refused.value.code == "bad_buckets"
