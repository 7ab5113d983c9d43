"""Record keys made of columns, for tables that do not store them."""

import datetime

import pyarrow as pa

from lakewarden.engine.table.keygen.key_scheme import KeyScheme


def keys(rows: pa.Table, *fields: str) -> list[str]:
    found: list[str] = KeyScheme(fields, len(fields) > 1).keys_of_stored(rows).to_pylist()
    return found


def test_single_key_is_the_value_as_java_spells_it() -> None:
    rows = pa.table({"s": ["a"], "n": [7], "b": [True], "d": [datetime.date(1970, 1, 3)]})
    spelled = [["a"], ["7"], ["true"], ["1970-01-03"]]
    assert [keys(rows, name) for name in rows.column_names] == spelled


def test_composite_key_names_its_fields_and_marks_null_and_empty() -> None:
    rows = pa.table({"a": ["x", "", None], "n": [1, 2, 3]})
    assert keys(rows, "a", "n") == ["a:x,n:1", "a:__empty__,n:2", "a:__null__,n:3"]


def test_texts_that_a_file_keeps_as_dictionaries_make_the_same_keys() -> None:
    rows = pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()})
    assert keys(rows, "a") == ["x", "y", "x"]
