"""Base files: whole or in batches, only the wanted columns, and no row groups in vain."""

import io
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.read.merge.base_file import BaseReader, RowChoice
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from tests.engine.read.counted_reads import CountedReads

ROWS = pa.table({"n": list(range(100)), "s": [f"text {n % 7}" for n in range(100)]})
PATH = "p/base.parquet"


def stored(rows: pa.Table, **options: object) -> MemoryStorage:
    storage = fresh_memory_storage()
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    storage.put(PATH, sink.getvalue())
    return storage


@pytest.mark.parametrize("batch_rows", [None, 7, 1000])
def test_rows_are_those_written(batch_rows: int | None) -> None:
    reader = BaseReader(stored(ROWS, row_group_size=10))
    found = pa.concat_tables(reader.tables(PATH, ["n", "s"], batch_rows=batch_rows))
    assert found.combine_chunks().equals(ROWS.combine_chunks())


def test_columns_that_the_file_lacks_are_left_out() -> None:
    (found,) = BaseReader(stored(ROWS)).tables(PATH, ["later", "n"])
    assert found.column_names == ["n"]


@pytest.mark.parametrize(
    ("expression", "read"),
    [(pc.field("n") > 75, 3), (pc.field("n") == 5, 1), (pc.field("s") >= "", 10)],
)
def test_row_groups_that_cannot_match_are_not_read(expression: pc.Expression, read: int) -> None:
    reader = BaseReader(stored(ROWS, row_group_size=10))
    wanted = (expression, ROWS.schema)
    assert reader.count_row_groups(PATH, wanted) == (read, 10)
    found = pa.concat_tables(reader.tables(PATH, ["n", "s"], row_filter=wanted))
    assert len(found) == 10 * read
    assert len(found.filter(expression)) == len(ROWS.filter(expression))


def test_a_column_that_was_widened_since_skips_nothing() -> None:
    reader = BaseReader(stored(ROWS, row_group_size=10))
    wanted = (pc.field("n") == "5", pa.schema([("n", pa.string()), ("s", pa.string())]))
    assert reader.count_row_groups(PATH, wanted) == (10, 10)


NUMBERS = [3, 4, 41, 99]


@pytest.mark.parametrize("batch_rows", [None, 7])
@pytest.mark.parametrize("columns", [["n", "s", "t"], ["t"], ["s", "n"], ["n"]])
def test_only_chosen_rows_are_read(batch_rows: int | None, columns: list[str]) -> None:
    rows = ROWS.append_column("t", ROWS["s"])
    reader = BaseReader(stored(rows, row_group_size=10))
    choice = RowChoice(("n",), lambda rows: np.flatnonzero(np.isin(rows["n"], NUMBERS)))
    found = reader.tables(PATH, columns, batch_rows=batch_rows, choice=choice)
    assert pa.concat_tables(found).to_pylist() == rows.take(NUMBERS).select(columns).to_pylist()


def test_of_row_groups_without_a_chosen_row_only_the_choosing_column_is_read() -> None:
    rows = pa.table({"n": range(100), "s": [f"{number:020}" * 1500 for number in range(100)]})
    content = stored(rows, row_group_size=10, use_dictionary=False, compression="none")
    storage = CountedReads(content)
    choice = RowChoice(("n",), lambda rows: np.flatnonzero(np.isin(rows["n"], [41])))
    (found,) = BaseReader(cast(Storage, storage)).tables(PATH, ["n", "s"], choice=choice)
    assert found["n"].to_pylist() == [41]
    # The texts of one row group of ten, the numbers of all, and the footer.
    assert sum(storage.fetched) < rows.nbytes * 0.15


def test_a_file_without_rows() -> None:
    reader = BaseReader(stored(ROWS.slice(0, 0)))
    assert sum(len(part) for part in reader.tables(PATH, ["n"])) == 0


def test_bytes_that_are_no_parquet_file_name_the_path() -> None:
    storage = fresh_memory_storage()
    storage.put(PATH, b"PAR1 but nothing else PAR1")
    with pytest.raises(CorruptTable, match=r"base\.parquet"):
        list(BaseReader(storage).tables(PATH, ["n"]))


@pytest.mark.parametrize("batch_rows", [None, 30])
def test_only_texts_that_repeat_are_left_as_dictionaries(batch_rows: int | None) -> None:
    rows = ROWS.append_column("unique", pa.array([f"{n:064d}" for n in range(100)]))
    # A dictionary page of a few bytes is full at once, so that unique texts are stored plain.
    reader = BaseReader(stored(rows, dictionary_pagesize_limit=64))
    tables = reader.tables(
        PATH, ["n", "s", "unique"], batch_rows=batch_rows, keep_dictionaries=True
    )
    found = pa.concat_tables(tables)
    assert [pa.types.is_dictionary(type_) for type_ in found.schema.types] == [False, True, False]
    assert found["s"].cast(pa.string()).to_pylist() == rows["s"].to_pylist()


def test_batches_are_bounded_by_bytes_of_the_wanted_columns() -> None:
    texts = [f"{number:06d}" * 1_000 for number in range(200)]
    rows = pa.table({"n": list(range(200)), "fat": texts})
    reader = BaseReader(stored(rows, use_dictionary=False, row_group_size=100))
    given = {"batch_rows": 150, "batch_bytes": 60_000}
    fat = list(reader.tables(PATH, ["n", "fat"], **given))  # type: ignore[arg-type]
    assert max(len(batch) for batch in fat) in range(8, 11)
    assert pa.concat_tables(fat).equals(rows)
    thin = list(reader.tables(PATH, ["n"], **given))  # type: ignore[arg-type]
    assert max(len(batch) for batch in thin) >= 100
