"""Base files: how their rows are cut into row groups."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.write.files.base_files import row_group_rows
from lakewarden.engine.write.files.spec import FileOptions
from tests.engine.write.small_table import SmallTable, keyed, write_spec_of


def test_row_groups_are_small_enough_to_find_a_row_in() -> None:
    """By rows, by more of them where columns are many, and by bytes where rows are wide."""
    count = 40_000
    narrow = pa.table({"k": pa.array(np.arange(count)).cast(pa.string()), "v": ["v"] * count})
    table = SmallTable(write_spec_of())
    rows = narrow.append_column("ts", pa.array(np.ones(count, np.int64)))
    written = table.write(inserts=keyed(rows))
    content = table.storage.read(str(written.stat.path))
    found = pq.ParquetFile(io.BytesIO(content)).metadata
    sizes = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
    assert sizes == [1 << 14, 1 << 14, count - (1 << 15)]
    many = pa.table({str(number): pa.nulls(1 << 17, pa.int8()) for number in range(256)})
    assert row_group_rows(many, FileOptions()) == 1 << 16
    wide = pa.table({"text": ["x" * (1 << 20)] * 4})
    assert row_group_rows(wide, FileOptions()) == 31
