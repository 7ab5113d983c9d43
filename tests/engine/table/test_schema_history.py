"""Column names through renames, drops and additions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.table.schema import SchemaHistory, parse_schema_history


def history(*versions: tuple[int, dict[int, str]]) -> SchemaHistory:
    schemas = [
        {"version_id": version, "fields": [{"id": i, "name": n} for i, n in names.items()]}
        for version, names in versions
    ]
    return parse_schema_history(json.dumps({"schemas": schemas}).encode(), "x.schemacommit")


def test_renamed_column_has_its_old_name_in_older_files() -> None:
    renamed = history((20, {5: "id", 6: "title"}), (0, {5: "id", 6: "name"}))
    assert renamed.sources("10").names == {"title": "name", "name": None}
    assert not renamed.sources("20")


def test_added_column_is_in_no_older_file() -> None:
    assert history((20, {5: "id", 7: "extra"}), (0, {5: "id"})).sources("10").names == {
        "extra": None
    }


def test_column_added_again_under_a_dropped_name_does_not_show_the_old_values() -> None:
    again = history((30, {5: "id", 9: "v"}), (20, {5: "id"}), (0, {5: "id", 7: "v"}))
    assert again.sources("10").names == {"v": None}


def test_what_a_file_calls_by_the_name_of_a_dropped_column_is_that_one() -> None:
    dropped = history((20, {5: "id"}), (0, {5: "id", 7: "v"}))
    assert dropped.sources("10").names == {"v": None}
    assert dropped.sources("20").of("v") == "v"


def test_no_history_renames_nothing() -> None:
    assert not SchemaHistory().sources("10")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_history_or_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptTable):
        parse_schema_history(payload, "x.schemacommit")
