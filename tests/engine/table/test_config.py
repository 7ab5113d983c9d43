"""What properties make a table, and which tables are refused before anything is read."""

import pytest

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.table.config import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    TableType,
    load_config,
    table_config,
)
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument

MINIMAL = {
    "hoodie.table.name": "orders",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
}


def memory() -> MemoryStorage:
    return fresh_memory_storage()


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_golden_properties_are_understood(name: str, golden_document: GoldenDocument) -> None:
    timeline = golden_document(name)["timeline"]
    config = table_config(timeline["properties"])
    assert config.version == timeline["table_version"]
    assert config.table_type.value == timeline["table_type"]


def test_fields_and_flags() -> None:
    config = table_config(
        MINIMAL
        | {
            "hoodie.table.recordkey.fields": "id, day",
            "hoodie.table.ordering.fields": "ts,seq",
            "hoodie.populate.meta.fields": "false",
            "hoodie.table.metadata.partitions": "files,column_stats",
        }
    )
    assert config.table_type is TableType.MERGE_ON_READ
    assert config.key_fields == ("id", "day")
    assert config.merge.ordering_fields == ("ts", "seq")
    assert not config.has_meta_fields
    assert config.has_metadata("files")
    assert not config.has_metadata("record_index")
    assert not config.is_partitioned


def test_missing_table_says_what_it_looked_for() -> None:
    with pytest.raises(InvalidRequest, match=r"\.hoodie/hoodie\.properties") as refused:
        load_config(memory())
    assert refused.value.code == "no_table"


def test_backup_is_read_while_the_properties_are_being_replaced() -> None:
    storage = memory()
    text = "\n".join(f"{key}={value}" for key, value in MINIMAL.items())
    storage.put(BACKUP_PATH, text.encode())
    storage.put(PROPERTIES_PATH, b"")
    assert load_config(storage).name == "orders"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"hoodie.table.version": "5"}, "unsupported_table_version"),
        ({"hoodie.table.version": "10"}, "unsupported_table_version"),
        ({"hoodie.table.base.file.format": "LANCE"}, "unsupported_base_file_format"),
        ({"hoodie.table.base.file.format": "ORC"}, "unsupported_base_file_format"),
        ({"hoodie.bootstrap.base.path": "s3://old"}, "unsupported_bootstrap"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "unsupported_merge"),
        ({"hoodie.timeline.layout.version": "3"}, "unsupported_timeline_layout"),
    ],
)
def test_unsupported_tables_are_refused_by_name(change: dict[str, str], code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        table_config(MINIMAL | change)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"hoodie.table.version": "nine"},
        {"hoodie.table.version": ""},
        {"hoodie.table.type": "COPY_ON_READ"},
        {"hoodie.table.name": ""},
    ],
)
def test_nonsense_in_the_properties_is_corruption(change: dict[str, str]) -> None:
    with pytest.raises(CorruptTable):
        table_config(MINIMAL | change)
