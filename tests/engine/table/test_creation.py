"""Creation: the properties of new tables, and requests that are refused."""

from dataclasses import replace

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.creation import NewTable, new_table_config, refuse_fixed, table_name
from lakewarden.engine.table.merge_rules import MergeMode

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("q", pa.string())]
)
ASKED = NewTable(name="orders", schema=SCHEMA, key=["id"])


def test_a_plain_request_gives_a_copy_on_write_table_without_partitions() -> None:
    config = new_table_config(ASKED)
    assert config.table_type is TableType.COPY_ON_WRITE
    assert (config.version, config.key_fields, config.is_partitioned) == (9, ("id",), False)
    assert config.merge.mode is MergeMode.COMMIT_TIME
    assert config.key_generator == "NON_PARTITION"


def test_an_ordering_column_means_merging_by_event_time() -> None:
    config = new_table_config(replace(ASKED, ordering=["ts"], type="mor"))
    assert config.table_type is TableType.MERGE_ON_READ
    assert config.merge.mode is MergeMode.EVENT_TIME
    assert config.merge.ordering_fields == ("ts",)


@pytest.mark.parametrize(
    ("changes", "generator"),
    [
        ({"partition": ["p"]}, "SIMPLE"),
        ({"partition": ["p", "q"]}, "COMPLEX"),
        ({"key": ["id", "q"], "partition": ["p"]}, "COMPLEX"),
        ({"key": ["id", "q"]}, "NON_PARTITION"),
        ({"partition": ["p:SIMPLE", "ts:TIMESTAMP"]}, "CUSTOM"),
        (
            {
                "partition": ["ts"],
                "properties": {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"},
            },
            "TIMESTAMP",
        ),
    ],
)
def test_the_key_generator_follows_from_keys_and_partitions(
    changes: dict[str, object], generator: str
) -> None:
    assert new_table_config(replace(ASKED, **changes)).key_generator == generator


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"key": ["idd"]}, "unknown_column"),
        ({"partition": ["nowhere"]}, "unknown_column"),
        ({"ordering": ["nothing"]}, "unknown_column"),
        ({"type": "lance"}, "bad_type"),
        ({"merge_mode": "newest"}, "bad_merge_mode"),
        ({"merge_mode": "event_time"}, "missing_ordering"),
        ({"schema": pa.schema([])}, "no_columns"),
        ({"schema": pa.schema([("id", pa.string()), ("a b", pa.int32())])}, "bad_column_name"),
        (
            {"schema": pa.schema([("id", pa.string()), ("_hoodie_file_name", pa.string())])},
            "bad_column_name",
        ),
        ({"schema": pa.schema([("id", pa.string()), ("id", pa.string())])}, "repeated_columns"),
        ({"name": "my table"}, "bad_table_name"),
    ],
)
def test_a_wrong_request_is_refused_by_name(changes: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        new_table_config(replace(ASKED, **changes))
    assert caught.value.code == code


def test_an_unknown_column_names_the_nearest() -> None:
    asked = replace(ASKED, schema=pa.schema([("order_id", pa.string())]), key=["orderid"])
    with pytest.raises(InvalidRequest, match="Did you mean 'order_id'"):
        new_table_config(asked)


def test_properties_that_creation_decides_are_refused_when_they_differ() -> None:
    refuse_fixed({"hoodie.table.version": "9"})
    with pytest.raises(InvalidRequest) as caught:
        refuse_fixed({"hoodie.table.version": "6"})
    assert caught.value.code == "unsupported_property"


@pytest.mark.parametrize(
    ("path", "name"),
    [("/lake/orders", "orders"), ("s3://lake/my-orders/", "my_orders"), ("/lake/2024", "t_2024")],
)
def test_a_table_is_called_like_its_folder(path: str, name: str) -> None:
    assert table_name(path) == name
