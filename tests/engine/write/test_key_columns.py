"""The key column of a rewritten file: read only once where it is the record key, and never lost."""

from dataclasses import replace

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.keygen.key_scheme import key_column

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("q", pa.string())])
ROWS = [{"id": f"k{n}", "n": n, "p": "a", "q": "b"} for n in range(4)]
CHANGED = {"id": "k1", "n": 10, "p": "a", "q": "b"}
AFTER = [ROWS[0], CHANGED, *ROWS[2:]]


SHAPES = pytest.mark.parametrize(
    ("key", "partition", "ordering", "record_key"),
    [
        (["id"], [], [], "k0"),
        # With two partition columns Hudi's keys name their column.
        (["id"], ["p", "q"], [], "id:k0"),
        (["id", "q"], [], [], "id:k0,q:b"),
        (["n"], [], [], "0"),
        # What orders rows has to be there when they are merged.
        (["id"], [], ["id"], "k0"),
    ],
    ids=["plain", "named", "several", "number", "ordering"],
)


@SHAPES
def test_rows_that_stay_keep_their_key_column(
    key: list[str], partition: list[str], ordering: list[str], record_key: str
) -> None:
    table = Table.create(
        "", SCHEMA, key=key, partition=partition, ordering=ordering, storage=fresh_memory_storage()
    )
    table.upsert(ROWS)
    changed = {**ROWS[1], "q": "b"} if key == ["n"] else CHANGED
    table.upsert([changed])
    found = table.read_arrow().sort_by("id")
    expected = ROWS if key == ["n"] else AFTER
    assert found.select(SCHEMA.names).to_pylist() == expected
    assert found["_hoodie_record_key"][0].as_py() == record_key
    assert len(table.file_slices()) == 1


@SHAPES
def test_rows_merged_with_logs_keep_their_key_column(
    key: list[str], partition: list[str], ordering: list[str], record_key: str
) -> None:
    table = Table.create(
        "",
        SCHEMA,
        key=key,
        partition=partition,
        ordering=ordering,
        type="mor",
        storage=fresh_memory_storage(),
    )
    table.upsert(ROWS)
    changed = {**ROWS[1], "q": "b"} if key == ["n"] else CHANGED
    table.upsert([changed])
    (slice_,) = table.file_slices()
    assert slice_.base_file is not None
    assert slice_.log_files
    expected = ROWS if key == ["n"] else AFTER
    found = table.read_arrow().sort_by("id")
    assert found.schema.names[5:] == SCHEMA.names
    assert found.select(SCHEMA.names).to_pylist() == expected
    assert found["_hoodie_record_key"][0].as_py() == record_key
    assert sorted(table.read_arrow(columns=["id"])["id"].to_pylist()) == ["k0", "k1", "k2", "k3"]
    (row,) = table.read_arrow(filter=[("id", "=", "k1")]).select(SCHEMA.names).to_pylist()
    assert row == expected[1]


def test_a_key_generator_that_nobody_knows_leaves_the_key_column_alone() -> None:
    config = Table.create("", SCHEMA, key=["id"], storage=fresh_memory_storage()).config
    assert key_column(config, SCHEMA) == "id"
    assert key_column(replace(config, key_generator="com.example.Own"), SCHEMA) is None
    assert key_column(replace(config, has_meta_fields=False), SCHEMA) is None
