"""Rewriting a base file: what of the old file's footer goes into the new one."""

import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.write.files.file_content import REBUILT_UP_TO
from lakewarden.engine.write.files.spec import WrittenFile
from tests.engine.write.small_table import Row, SmallTable, keyed, write_spec_of


def footer(table: SmallTable, written: WrittenFile) -> pq.FileMetaData:
    return BaseReader(table.storage).metadata(str(written.stat.path))


def test_the_filter_of_a_large_file_is_kept_when_it_is_rewritten() -> None:
    rows: list[Row] = [{"k": f"{n:06}", "v": "", "ts": 1} for n in range(REBUILT_UP_TO + 1)]
    table = SmallTable(write_spec_of())
    first = footer(table, table.write(inserts=keyed(rows)))
    # A filter that is made anew does not know the key that goes.
    second = footer(table, table.write(updates=keyed([{**rows[0], "ts": 2}], deletes=[0])))
    assert second.num_rows == REBUILT_UP_TO
    kept, before = (key_footer(one).bloom_text for one in (second, first))
    assert kept is not None
    assert kept == before
