"""Column statistics as they are read: bounds of texts are those that the ranges say."""

import pyarrow as pa

from lakewarden.engine.metadata.entries.changes import ColumnSummary, NewFile
from lakewarden.engine.metadata.reading.column_stats import column_ranges, text_bounds
from tests.engine.metadata.table_in_memory import TableInMemory, new_file

KEY = "_hoodie_record_key"


def named(number: int) -> str:
    return f"g{number}-0_0-0-0_1.parquet"


def test_bounds_of_texts_are_those_that_can_be_compared() -> None:
    table = TableInMemory().create()
    # Java has another order for the last one, and a log of deletes has no value.
    texts = (["b", "a"], ["ä", "z"], ["\U0001f600", "a"])
    files = [new_file("p", named(at), one, [1.0, 2.0]) for at, one in enumerate(texts)]
    nothing = NewFile("p", named(3), 1, {KEY: ColumnSummary(None, None, 0, 0)})
    unknown = NewFile("p", named(4), 1)
    elsewhere = new_file("q", named(0), ["x"], [1.0])
    table.write(*files, nothing, unknown, elsewhere)
    statistics = table.metadata.partition("column_stats")
    found = text_bounds(statistics, KEY, ["p", "q"])
    assert found == {
        "p": {named(0): ("a", "b"), named(1): ("z", "ä"), named(3): None},
        "q": {named(0): ("x", "x")},
    }
    ranges = column_ranges(statistics, [KEY], ["p", "q"])
    assert not ranges["p"][named(2)][KEY].is_trusted
    for partition, of_files in found.items():
        for name, bounds in of_files.items():
            said = ranges[partition][name][KEY].bounds(pa.string())
            assert bounds == (None if said is None else (said[0].as_py(), said[1].as_py()))


def test_of_a_column_without_texts_nothing_is_known() -> None:
    table = TableInMemory().create()
    assert text_bounds(table.metadata.partition("column_stats"), KEY, ["p"]) == {}
    table.write(new_file("p", named(0), ["1"], [1.0]))
    assert text_bounds(table.metadata.partition("column_stats"), "n", ["p"]) == {}
