"""Records can ask for their own deletion in three ways."""

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.spec import marked_deleted
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules


def rules(field: str | None = None, marker: str | None = None) -> MergeRules:
    return MergeRules(MergeMode.COMMIT_TIME, delete_field=field, delete_marker=marker)


def test_records_without_marks_stay():
    assert marked_deleted(pa.table({"a": [1, 2]}), rules("op", "D")).tolist() == [False, False]


def test_the_flag_deletes_where_it_is_true():
    records = pa.table({"_hoodie_is_deleted": [True, False, None]})
    assert marked_deleted(records, rules()).tolist() == [True, False, False]


def test_a_flag_of_another_type_is_just_a_column():
    assert marked_deleted(pa.table({"_hoodie_is_deleted": ["true"]}), rules()).tolist() == [False]


def test_the_operations_delete_and_update_before_delete():
    records = pa.table({"_hoodie_operation": ["I", "U", "-U", "D", None]})
    assert marked_deleted(records, rules()).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("column", "marker"),
    [
        (pa.array(["I", "D", None]), "D"),
        (pa.array(["I", "D", None], pa.large_string()), "D"),
        (pa.array(["I", "D", None]).dictionary_encode(), "D"),
        (pa.array([0, -1, None], pa.int32()), "-1"),
        (pa.array([True, False, None]), "false"),
    ],
)
def test_the_tables_own_field_deletes_where_it_holds_the_marker(column: pa.Array, marker: str):
    assert marked_deleted(pa.table({"op": column}), rules("op", marker)).tolist() == [
        False,
        True,
        False,
    ]


def test_a_field_without_marker_deletes_nothing():
    assert marked_deleted(pa.table({"op": ["D"]}), rules("op", None)).tolist() == [False]


def test_a_delete_field_whose_java_text_is_unknown_is_refused():
    with pytest.raises(InvalidRequest) as caught:
        marked_deleted(pa.table({"op": [1.5]}), rules("op", "1.5"))
    assert caught.value.code == "unsupported_delete_field"
