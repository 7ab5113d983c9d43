"""The key column of a rewritten file: read only once where it is the record key, and never lost."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("q", pa.string())])
ROWS = [{"id": f"k{n}", "n": n, "p": "a", "q": "b"} for n in range(4)]
CHANGED = {"id": "k1", "n": 10, "p": "a", "q": "b"}
AFTER = [ROWS[0], CHANGED, *ROWS[2:]]


@pytest.mark.parametrize(
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
