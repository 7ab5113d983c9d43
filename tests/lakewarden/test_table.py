"""The front door: what callers pass in, right and wrong, and what they get back."""

from typing import Any

import pyarrow.compute as pc
import pytest

from lakewarden import InvalidRequest, Table, Unavailable
from tests.golden_tables import GoldenTable

NAME = "mor_secondary_index"
ROWS = 11


@pytest.fixture
def table(golden: GoldenTable) -> Table:
    return Table(str(golden(NAME)))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"as_of": "yesterday"}, "bad_time"),
        ({"as_of": 5}, "bad_time"),
        ({"columns": "id"}, "bad_columns"),
        ({"filter": "nope > 1"}, "bad_filter"),
        ({"mode": "raw"}, "bad_mode"),
        ({"columns": ["idd"]}, "unknown_column"),
        ({"filter": [("n", "~", 1)]}, "bad_filter"),
        ({"filter": [("n", "=", "text")]}, "bad_filter"),
        ({"filter": pc.field("nope") == 1}, "bad_filter"),
    ],
)
def test_a_wrong_wish_is_refused_before_anything_is_read(
    table: Table, query: dict[str, Any], code: str
) -> None:
    for read in (table.read_arrow, table.read_batches, table.explain):
        with pytest.raises(InvalidRequest) as refused:
            read(**query)
        assert refused.value.code == code


@pytest.mark.parametrize("keys", ["k000", [None], [b"k000"], [("k000",)]])
def test_keys_that_are_no_texts_are_refused(table: Table, keys: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        table.lookup(keys)
    assert refused.value.code == "bad_keys"


def test_no_keys_no_rows(table: Table) -> None:
    found = table.lookup([])
    assert (found.num_rows, found.schema) == (0, table.schema)


def test_no_columns_still_count_rows(table: Table) -> None:
    assert table.read_arrow(columns=[]).num_rows == ROWS
    assert sum(batch.num_rows for batch in table.read_batches(columns=[])) == ROWS


def test_columns_come_in_the_order_asked_for(table: Table) -> None:
    assert table.read_arrow(columns=["n", "id"]).column_names == ["n", "id"]


def test_a_window_after_everything_is_empty(table: Table) -> None:
    assert table.changes_arrow("29991231235959999").num_rows == 0
    assert table.changes_arrow("29991231235959999", "20000101000000000").num_rows == 0


def test_times_may_be_dates(table: Table) -> None:
    assert table.read_arrow(as_of="2999-12-31").num_rows == ROWS
    assert table.read_arrow(as_of="1999-12-31 23:59:59").num_rows == 0


def test_what_the_table_is(table: Table) -> None:
    assert table.config.key_fields == ("id",)
    assert table.properties["hoodie.table.name"] == NAME
    assert table.partitions() == ("p=a", "p=b", "p=c")
    assert table.timeline().completed()
    assert {slice_.partition for slice_ in table.file_slices(partition="p=a")} == {"p=a"}
    states = {index.name: index.state for index in table.indexes()}
    assert states["record_index"] == "READY"
    assert states["idx_name"] == "READY"


def test_credentials_are_in_no_error_and_no_repr() -> None:
    secret = "s3cr3t-of-the-lake"
    options = {"key": "k", "secret": secret, "endpoint_url": "http://127.0.0.1:1"}
    with pytest.raises(Unavailable) as failed:
        Table("s3://lake/orders", storage_options=options)
    assert secret not in str(failed.value)
    assert secret not in repr(failed.value)
