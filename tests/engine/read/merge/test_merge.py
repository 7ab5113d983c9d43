"""Folding logs and merging them with base rows does what the row-by-row model does."""

import math
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.read.merge.entries import log_entries
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.merge import Merger
from tests.engine.read.histories import DEFAULTS, History, histories
from tests.sampling import IS_SIMULATION


def merged(history: History, batches: Sequence[pa.Table]) -> pa.Table:
    folded = fold(
        log_entries(history.parts, history.schema, history.rules), history.rules, DEFAULTS
    )
    merger = Merger(folded)
    tables = [merger.merge_batch(batch) for batch in batches]
    return pa.concat_tables([*tables, *merger.updated(), merger.rest()])


def expected(history: History) -> pa.Table:
    rows = history.model.merge(history.entries, history.base)
    return pa.Table.from_pylist(rows, schema=history.schema)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(str([_shown(value) for value in row.values()]) for row in table.to_pylist())


def _shown(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@settings(max_examples=500 if IS_SIMULATION else 200)
@given(histories())
def test_merging_agrees_with_the_model(history: History):
    result = merged(history, [history.base_table])
    assert sorted_rows(result) == sorted_rows(expected(history))


@given(histories(), st.data())
def test_how_the_base_is_cut_into_batches_does_not_matter(history: History, data: st.DataObject):
    cut = data.draw(st.integers(0, len(history.base)))
    table = history.base_table
    result = merged(history, [table.slice(0, cut), table.slice(cut)])
    assert sorted_rows(result) == sorted_rows(merged(history, [table]))


@given(histories())
def test_dictionaries_are_merged_like_plain_texts(history: History):
    table = history.base_table
    result, plain = merged(history, [_with_dictionaries(table)]), merged(history, [table])
    # Tables with NaN are never equal; their rows, as shown, are.
    assert result.schema.equals(plain.schema)
    assert sorted_rows(result) == sorted_rows(plain)


def _with_dictionaries(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table[field.name].dictionary_encode())
    return table
