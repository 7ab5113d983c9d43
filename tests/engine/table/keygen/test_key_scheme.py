"""Record keys of rows that are to be written."""

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import key_scheme, with_generated_keys
from tests.engine.table.table_properties import config_of

COMPLEX = {"hoodie__table__keygenerator__type": "COMPLEX"}


def keys(config: TableConfig, **columns: object) -> list[str]:
    found: list[str] = key_scheme(config).keys(pa.table(columns)).to_pylist()
    return found


def test_a_single_key_is_the_value() -> None:
    assert keys(config_of(), k=[1, 2]) == ["1", "2"]


def test_several_fields_are_named_and_gaps_have_placeholders() -> None:
    config = config_of("a,b,c")
    assert keys(config, a=["x", ""], b=[None, 2], c=["p,q:r", "é\n"]) == [
        "a:x,b:__null__,c:p,q:r",
        "a:__empty__,b:2,c:é\n",
    ]


@pytest.mark.parametrize(
    ("a", "b", "column"),
    [
        ("1,b:2", "3", "a"),
        ("__null__", "x", "a"),
        ("x", "__null__", "b"),
        ("__empty__", "x", "a"),
        ("x", "__empty__", "b"),
    ],
)
def test_a_key_whose_text_may_be_another_rows_is_refused(a: str, b: str, column: str) -> None:
    with pytest.raises(InvalidRequest, match="Row 1 has no unique record key: a = ") as refused:
        keys(config_of("a,b"), a=["fine,b", a], b=["fine,b:x", b])
    assert refused.value.code == "ambiguous_record_key"
    assert refused.value.parameters["column"] == column


TEXTS = st.one_of(
    st.none(),
    st.lists(st.sampled_from([",", "b:", "c:", "x", "__null__", "__empty__", ",b:"])).map("".join),
)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=2, max_size=2, unique=True))
def test_two_rows_never_have_one_key(values: list[tuple[str | None, ...]]) -> None:
    columns = {
        name: pa.array(own, pa.string())
        for name, own in zip("abc", zip(*values, strict=True), strict=True)
    }
    with suppress(InvalidRequest):
        first, second = keys(config_of("a,b,c"), **columns)
        assert first != second


def test_one_field_of_a_complex_key_is_named_in_version_9() -> None:
    assert keys(config_of(**COMPLEX), k=[1]) == ["k:1"]


def test_a_table_may_say_that_its_complex_keys_have_no_name() -> None:
    config = config_of(**COMPLEX, hoodie__table__complex__keygen__encoding="VALUE_ONLY")
    assert keys(config, k=[1]) == ["1"]


def test_older_tables_must_say_how_complex_keys_of_one_field_are_spelled() -> None:
    with pytest.raises(InvalidRequest) as refused:
        key_scheme(config_of(**COMPLEX, hoodie__table__version="8"))
    assert refused.value.code == "ambiguous_complex_keys"
    stated = {"hoodie__write__complex__keygen__new__encoding": "true"}
    assert keys(config_of(**COMPLEX, hoodie__table__version="8", **stated), k=[1]) == ["1"]


@pytest.mark.parametrize("gap", [None, ""])
def test_a_row_without_a_key_is_refused_by_number_and_column(gap: str | None) -> None:
    with pytest.raises(InvalidRequest, match="Row 1 has no record key: k") as refused:
        keys(config_of(), k=["a", gap])
    assert (refused.value.code, refused.value.parameters["row"]) == ("null_record_key", 1)


def test_a_composite_key_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"Row 2 .* a, b"):
        keys(config_of("a,b"), a=["x", None, None], b=["", "y", ""])


def test_rows_without_key_columns_keep_their_keys_or_get_one_of_the_instant() -> None:
    scheme, rows = key_scheme(config_of("")), pa.table({"a": [1, 1, 2]})
    stored = pa.chunked_array([["old", None, None]])
    assert with_generated_keys(scheme.keys(rows, stored), "7").to_pylist() == [
        "old",
        "7_0_1",
        "7_0_2",
    ]
    assert len(set(scheme.keys(rows).to_pylist())) == 3


def test_no_rows_have_no_keys() -> None:
    assert keys(config_of("a,b"), a=pa.array([], pa.string()), b=pa.array([], pa.int32())) == []
