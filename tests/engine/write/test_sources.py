"""Sources: every holder of rows gives the same Arrow table."""

import pandas as pd
import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.write.sources import arrow_rows

TABLE = pa.table({"id": ["a", "b"], "n": [1, 2]})


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_reader(),
        TABLE.to_batches()[0],
        TABLE.to_pylist(),
        TABLE.to_pandas(),
    ],
    ids=["table", "reader", "batch", "dictionaries", "pandas"],
)
def test_rows_are_the_same_from_every_source(source: object) -> None:
    assert arrow_rows(source).to_pylist() == TABLE.to_pylist()


def test_a_name_that_only_later_rows_have_is_a_column() -> None:
    rows = arrow_rows([{"id": "a"}, {"id": "b", "n": 2}])
    assert rows.to_pylist() == [{"id": "a", "n": None}, {"id": "b", "n": 2}]


@pytest.mark.parametrize("source", ["text", 7, None, [1, 2], pd])
def test_what_holds_no_rows_is_refused(source: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        arrow_rows(source)
    assert caught.value.code == "unsupported_rows"


def test_values_that_fit_in_no_column_are_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        arrow_rows([{"n": 1}, {"n": "one"}])
    assert caught.value.code == "unreadable_rows"
