"""How many files a filter reads of a table with every kind of index, beside Java's on its like.

Java 1.2 was asked on 20 base files, from 5 writes to 4 partitions, and read as many as the numbers
say, unless a comment says otherwise.
"""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("v", pa.float64()),
        ("ts", pa.int64()),
    ]
)
WRITES, ROWS = 5, 40
FILES = 20


@pytest.fixture(scope="module")
def table() -> Table:
    made = Table.create(
        "indexed",
        SCHEMA,
        key=["id"],
        partition=["p"],
        index="RECORD_INDEX",
        storage=fresh_memory_storage(),
        properties={
            "hoodie.parquet.small.file.limit": 0,
            "lakewarden.index.expression.timezone": "UTC",
        },
    )
    for write in range(WRITES):
        made.insert(pa.Table.from_pylist([row(write, at) for at in range(ROWS)], SCHEMA))
    days = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    made.create_index("by_name", ["name"])
    made.create_index("by_day", ["ts"], "column_stats", days)
    made.create_index("by_low", ["name"], "bloom_filters", {"expr": "lower"})
    return made


def row(write: int, at: int) -> dict[str, object]:
    """A row; each group of four has one in each partition."""
    group = at // 4
    is_nameless = (write, at) == (3, 0)
    return {
        "id": f"k{write}{at:03}",
        "p": "abcd"[at % 4],
        "name": None if is_nameless else f"N{write * 10 + group}",
        "n": write * 100 + group,
        "v": write + group / 10,
        "ts": write * 86_400 + 10,
    }


@pytest.mark.parametrize(
    ("text", "files", "rows", "index"),
    [
        ("id = 'k2003'", 1, 1, "record_index"),
        ("id in ('k2003', 'k4017')", 2, 2, "record_index"),
        ("_hoodie_record_key = 'k2003'", 1, 1, "record_index"),
        ("name = 'N7'", 4, 4, "by_name"),
        ("name in ('N7', 'N23')", 8, 8, "by_name"),
        # Java reads all.
        ("name is null", 1, 1, "by_name"),
        ("n = 205", 4, 4, None),
        ("n > 408", 4, 4, None),
        # Four more: Java writes a bound of 0.0 for files with NaN, so that it may be none.
        ("v = 3.0", 8, 4, None),
        ("from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-02'", 4, 40, "by_day"),
        # Java reads all.
        ("from_unixtime(ts, 'yyyy-MM-dd') < '1970-01-02'", 4, 40, "by_day"),
        ("lower(name) = 'n7'", 4, 4, "by_low"),
        ("lower(name) = 'nothing'", 0, 0, "by_low"),
        # Java takes the filters of `lower` for those of `upper`, and loses the rows.
        ("upper(name) = 'N7'", FILES, 4, None),
        # Java's read fails.
        ("ts = 86410", 4, 40, None),
        ("p = 'a' and n = 0", 1, 1, None),
        ("id = 'k2003' or n = 0", FILES, 5, None),
        # Java reads all. N7 alone; no other name begins so.
        ("name like 'N7%'", FILES, 4, "by_name"),
    ],
)
def test_a_filter_reads_few_files_and_finds_all_rows(
    table: Table, text: str, files: int, rows: int, index: str | None
) -> None:
    explained = table.explain(filter=text)
    found = table.read_arrow(["id"], filter=text).column("id").to_pylist()
    plain = table.read_arrow(["id"], filter=text, use_metadata=False).column("id").to_pylist()
    assert sorted(found) == sorted(plain)
    assert len(found) == rows
    assert len(explained.slices) <= files
    named = {one.index: one for one in explained.indexes}
    assert index is None or (index in named and named[index].reason is None), explained
    for one in named.values():
        assert one.reason is None or one.skipped_count == 0
