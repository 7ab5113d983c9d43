"""Properties files: created once, and changed so that every crash leaves a good one."""

from contextlib import suppress
from pathlib import Path

import pytest

from lakewarden.engine.formats.properties import parse_properties, verify_checksum
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import BACKUP_PATH, PROPERTIES_PATH, load_config
from lakewarden.engine.table.properties_file import update_properties, write_properties
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage

TABLE = {
    "hoodie.table.name": "orders",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
    "lakewarden.note": "a=b: c",
}


def properties_of(storage: Storage) -> dict[str, str]:
    properties = parse_properties(storage.read(PROPERTIES_PATH), PROPERTIES_PATH)
    verify_checksum(properties, PROPERTIES_PATH)
    return properties


def created() -> Storage:
    storage = fresh_memory_storage()
    write_properties(storage, TABLE)
    return storage


def test_a_created_file_carries_the_checksum_of_the_names() -> None:
    # Java's own vector for `.v9_txns_mor_simple_meta_metadata`.
    storage = fresh_memory_storage()
    write_properties(storage, TABLE | {"hoodie.table.name": "v9_txns_mor_simple_meta_metadata"})
    assert properties_of(storage)["hoodie.table.checksum"] == "2022389452"


def test_creating_the_same_table_again_is_no_error() -> None:
    storage = created()
    write_properties(storage, TABLE)
    assert load_config(storage).name == "orders"


def test_creating_another_table_in_the_same_place_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        write_properties(created(), TABLE | {"hoodie.table.name": "customers"})
    assert refused.value.code == "table_exists"


def test_an_update_sets_and_removes_and_keeps_the_rest() -> None:
    storage = created()
    after = update_properties(storage, {"hoodie.table.version": "8", "hoodie.table.type": None})
    assert properties_of(storage) == after
    assert after["hoodie.table.version"] == "8"
    assert "hoodie.table.type" not in after
    assert after["lakewarden.note"] == TABLE["lakewarden.note"]


def test_an_update_leaves_no_backup() -> None:
    storage = created()
    update_properties(storage, {"a": "b"})
    assert storage.stat(BACKUP_PATH) is None


def test_t2_an_update_removes_the_checksum_that_hadoop_kept_of_the_file(tmp_path: Path) -> None:
    storage = open_storage(Location(tmp_path.as_uri()))
    write_properties(storage, TABLE)
    crc = tmp_path / ".hoodie" / ".hoodie.properties.crc"
    crc.write_bytes(b"crc")
    update_properties(storage, {"a": "b"})
    assert not crc.exists()


def test_an_update_that_changes_nothing_writes_nothing() -> None:
    storage = FaultyStorage(created())
    update_properties(storage, {"hoodie.table.version": "9", "never.there": None})
    assert "put" not in {call.operation for call in storage.calls}


def test_t7_a_new_name_gets_a_new_checksum() -> None:
    storage = created()
    before = properties_of(storage)["hoodie.table.checksum"]
    update_properties(storage, {"hoodie.table.name": "customers"})
    assert properties_of(storage)["hoodie.table.checksum"] != before


def test_a_file_whose_update_was_cut_short_comes_back_from_its_backup() -> None:
    storage = created()
    storage.put(BACKUP_PATH, storage.read(PROPERTIES_PATH))
    storage.put(PROPERTIES_PATH, storage.read(PROPERTIES_PATH)[:60])
    update_properties(storage, {"a": "b"})
    assert properties_of(storage)["lakewarden.note"] == TABLE["lakewarden.note"]


def test_a_wrong_checksum_without_backup_is_not_overwritten() -> None:
    storage = created()
    storage.put(PROPERTIES_PATH, storage.read(PROPERTIES_PATH).replace(b"orders", b"orderz"))
    with pytest.raises(CorruptTable) as damaged:
        update_properties(storage, {"a": "b"})
    assert damaged.value.code == "wrong_checksum"


def test_a_file_without_checksum_gets_one() -> None:
    storage = fresh_memory_storage()
    storage.put(PROPERTIES_PATH, b"hoodie.table.name=orders\n")
    update_properties(storage, {"a": "b"})
    assert "hoodie.table.checksum" in properties_of(storage)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CorruptTable) as missing:
        update_properties(fresh_memory_storage(), {"a": "b"})
    assert missing.value.code == "missing_properties"


def test_a_crash_at_any_call_leaves_the_old_or_the_new_properties() -> None:
    rehearsal = FaultyStorage(created())
    update_properties(rehearsal, {"hoodie.table.type": "COPY_ON_WRITE", "a": "b"})
    plans = list(crash_plans(rehearsal.calls))
    assert len(plans) > len(rehearsal.calls)
    old, new = TABLE.keys(), {*TABLE, "a"}
    for plan in plans:
        storage = created()
        with suppress(Crashed):
            changes = {"hoodie.table.type": "COPY_ON_WRITE", "a": "b"}
            update_properties(FaultyStorage(storage, plan), changes)
        found = load_config(storage).properties.keys() - {"hoodie.table.checksum"}
        assert found in (old, new), plan
        update_properties(storage, {"a": "c"})
        assert properties_of(storage).keys() - {"hoodie.table.checksum"} == new, plan
        assert storage.stat(BACKUP_PATH) is None, plan
