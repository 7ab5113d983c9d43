"""Incoming rows, made ready to be written."""

from datetime import datetime

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import TableSchema, schema_from
from lakewarden.engine.write.rows.evolve import evolved
from lakewarden.engine.write.rows.prepare import CHUNKS_MAX, keyed_rows
from tests.engine.table.table_properties import config_of

COLUMNS = {"k": pa.string(), "p": pa.string(), "n": pa.int64(), "ts": pa.int64()}
SCHEMA = evolved(
    TableSchema(pa.schema([]), None), pa.schema(COLUMNS), allow_missing=False, table_name="t"
)


def config(**properties: str) -> TableConfig:
    return config_of(partitions="p", hoodie__table__ordering__fields="ts", **properties)


def prepared(rows: pa.Table, *, deletes: bool = False) -> KeyedRows:
    return keyed_rows(rows, config(), SCHEMA, deletes=deletes)


def test_rows_get_the_tables_columns_keys_and_partitions() -> None:
    rows = pa.table(
        {
            "ts": pa.array([1, 2], pa.int32()),
            "n": pa.array([1, None], pa.uint8()),
            "k": pa.array(["a", "b"], pa.dictionary(pa.int8(), pa.string())),
            "p": pa.array(["x", None], pa.large_string()),
            "_hoodie_file_name": ["f", "f"],
        }
    )
    found = prepared(rows)
    assert found.rows.schema == SCHEMA.columns
    assert found.rows.to_pylist()[1] == {"k": "b", "p": None, "n": None, "ts": 2}
    assert found.keys.to_pylist() == ["a", "b"]
    assert found.partitions.to_pylist() == ["x", "__HIVE_DEFAULT_PARTITION__"]
    assert not found.is_delete.any()


@pytest.mark.parametrize(("pieces", "left"), [(2, 2), (CHUNKS_MAX + 1, 1)])
def test_rows_in_many_pieces_become_one(pieces: int, left: int) -> None:
    piece = pa.table({"k": ["a"], "p": ["x"], "n": [1], "ts": [1]})
    found = prepared(pa.concat_tables([piece] * pieces))
    assert found.rows.column("k").num_chunks == left
    assert len(found) == len(found.keys) == pieces


def test_no_rows() -> None:
    assert len(prepared(SCHEMA.columns.empty_table())) == 0


def test_missing_columns_are_null() -> None:
    found = prepared(pa.table({"k": ["a"], "p": ["x"], "ts": [1]}))
    assert found.rows.column("n").to_pylist() == [None]


def test_marked_rows_delete_and_keep_their_ordering_value() -> None:
    schema = evolved(
        SCHEMA,
        pa.schema({**COLUMNS, "_hoodie_is_deleted": pa.bool_()}),
        allow_missing=False,
        table_name="t",
    )
    rows = pa.table(
        {
            "k": ["a", "b", "c"],
            "p": ["x", "x", "x"],
            "n": [1, 1, 1],
            "ts": [1, 2, None],
            "_hoodie_is_deleted": [False, True, True],
        }
    )
    found = keyed_rows(rows, config(), schema, deletes=False)
    assert found.is_delete.tolist() == [False, True, True]
    # Without a value to compare by, a delete is unconditional.
    assert found.is_unconditional.tolist() == [False, False, True]


def test_deletes_need_only_keys_and_partitions_and_are_unconditional() -> None:
    found = prepared(pa.table({"k": ["a"], "p": ["x"]}), deletes=True)
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["a"], ["x"])
    assert found.is_delete.all()
    assert found.is_unconditional.all()
    assert found.rows.num_columns == 0


def test_deletes_without_partitions_suit_a_global_index_only() -> None:
    rows = pa.table({"k": ["a"]})
    with pytest.raises(InvalidRequest, match="'p'"):
        prepared(rows, deletes=True)
    found = keyed_rows(rows, config(), SCHEMA, deletes=True, partition_matters=False)
    assert found.partitions.to_pylist() == [""]


def test_the_first_row_without_a_key_is_named() -> None:
    with pytest.raises(InvalidRequest, match="Row 1"):
        prepared(pa.table({"k": ["a", None], "p": ["x", "x"], "n": [1, 1], "ts": [1, 1]}))


def test_nulls_in_a_column_that_has_none_are_refused() -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"k","type":"string"},' + (
        '{"name":"n","type":"long"}]}'
    )
    rows = pa.table({"k": ["a"], "n": pa.array([None], pa.int64())})
    with pytest.raises(InvalidRequest) as refused:
        keyed_rows(rows, config_of(), schema_from(text, "p"), deletes=False)
    assert refused.value.code == "null_not_allowed"


def test_moments_finer_than_the_column_are_refused_unless_nothing_is_lost() -> None:
    schema = evolved(
        TableSchema(pa.schema([]), None),
        pa.schema({"k": pa.string(), "t": pa.timestamp("ns")}),
        allow_missing=False,
        table_name="t",
    )
    whole = pa.table({"k": ["a"], "t": pa.array([1000], pa.timestamp("ns"))})
    found = keyed_rows(whole, config_of(), schema, deletes=False)
    assert found.rows.column("t").to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1)]
    finer = pa.table({"k": ["a"], "t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(InvalidRequest, match="column t") as refused:
        keyed_rows(finer, config_of(), schema, deletes=False)
    assert refused.value.code == "value_does_not_fit"


@pytest.mark.parametrize(
    ("property_name", "value"),
    [
        ("hoodie__datasource__write__drop__partition__columns", "true"),
        ("hoodie__table__base__file__format", "HFILE"),
    ],
)
def test_tables_that_cannot_be_written_are_refused_by_name(property_name: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        keyed_rows(
            SCHEMA.columns.empty_table(), config(**{property_name: value}), SCHEMA, deletes=False
        )
    assert refused.value.code.startswith("unsupported_")


def test_hostile_keys_are_only_text() -> None:
    keys = ["a,b:c", "\"'", "é\U0001f600", "line\nbreak", "\x00", "x" * 100_000]
    count = len(keys)
    rows = pa.table({"k": keys, "p": ["x"] * count, "n": [1] * count, "ts": [1] * count})
    assert prepared(rows).keys.to_pylist() == keys


def test_nulls_inside_a_list_that_has_none_are_refused() -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"k","type":"string"},' + (
        '{"name":"a","type":["null",{"type":"array","items":"int"}],"default":null}]}'
    )
    schema = schema_from(text, "p")
    fine = pa.table({"k": ["a", "b"], "a": pa.array([[1], None], pa.list_(pa.int64()))})
    assert keyed_rows(fine, config_of(), schema, deletes=False).rows.num_rows == 2
    rows = pa.table({"k": ["a"], "a": pa.array([[1, None]], pa.list_(pa.int32()))})
    with pytest.raises(InvalidRequest, match=r"a\[\]") as refused:
        keyed_rows(rows, config_of(), schema, deletes=False)
    assert refused.value.code == "null_not_allowed"
