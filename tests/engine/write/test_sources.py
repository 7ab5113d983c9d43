"""Sources: every holder of rows gives the same Arrow table."""

import pandas as pd
import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.write.operations import PlainRows, read_rows

TABLE = pa.table({"id": ["a", "b"], "n": [1, 2]})


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_reader(),
        TABLE.to_batches()[0],
        TABLE.to_pandas(),
    ],
    ids=["table", "reader", "batch", "pandas"],
)
def test_rows_are_the_same_from_every_source(source: object) -> None:
    rows = read_rows(source)
    assert isinstance(rows, pa.Table)
    assert rows.to_pylist() == TABLE.to_pylist()


def test_dictionaries_wait_for_the_types_of_the_table() -> None:
    rows = read_rows(TABLE.to_pylist())
    assert isinstance(rows, PlainRows)
    assert rows.table(TABLE.schema) == TABLE


@pytest.mark.parametrize("source", ["text", 7, None, [1, 2], pd])
def test_what_holds_no_rows_is_refused(source: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_rows(source)
    assert caught.value.code == "unsupported_rows"
