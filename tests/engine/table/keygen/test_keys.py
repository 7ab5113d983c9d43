"""Record keys rebuilt from columns, for tables that do not store them."""

import datetime

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.keygen.keys import is_composite, record_keys


def keys(rows: pa.Table, *fields: str) -> list[str]:
    found: list[str] = record_keys(rows, fields, composite=is_composite(fields)).to_pylist()
    return found


def test_single_key_is_the_value_as_java_spells_it() -> None:
    rows = pa.table({"s": ["a"], "n": [7], "b": [True], "d": [datetime.date(1970, 1, 3)]})
    assert [keys(rows, name) for name in rows.column_names] == [["a"], ["7"], ["true"], ["2"]]


def test_composite_key_names_its_fields_and_marks_null_and_empty() -> None:
    rows = pa.table({"a": ["x", "", None], "n": [1, 2, 3]})
    assert keys(rows, "a", "n") == ["a:x,n:1", "a:__empty__,n:2", "a:__null__,n:3"]


def test_key_types_that_releases_spell_differently_are_refused() -> None:
    rows = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(InvalidRequest) as refused:
        keys(rows, "t")
    assert refused.value.code == "unsupported_key_type"
