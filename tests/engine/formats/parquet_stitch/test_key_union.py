"""United key footers: no key is forgotten, and a filter stays as small as Hudi's."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.bloom import BloomFilter, build_bloom
from lakewarden.engine.formats.parquet_footer import KeyFooter
from lakewarden.engine.formats.parquet_stitch.stitcher import KeyUnion


def footer(keys: list[str], type_code: str = "DYNAMIC_V0", entries: int = 20) -> KeyFooter:
    bloom = build_bloom(
        pa.array(keys, pa.string()),
        type_code=type_code,
        entries=entries,
        false_positive_rate=1e-6,
        entries_max=3 * entries,
    )
    low, high = (min(keys), max(keys)) if keys else (None, None)
    return KeyFooter(bloom.text(), type_code, low, high)


def united(parts: list[list[str]], type_code: str = "DYNAMIC_V0") -> KeyFooter | None:
    union = KeyUnion(entries_max=60)
    for keys in parts:
        union.add(footer(keys, type_code), rows=len(keys), path="f")
    return union.footer()


def bloom_of(found: KeyFooter | None) -> BloomFilter:
    assert found is not None
    bloom = found.bloom_filter("f")
    assert bloom is not None
    return bloom


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.text(max_size=4), max_size=70), min_size=1, max_size=5),
    st.sampled_from(["DYNAMIC_V0", "SIMPLE"]),
)
def test_no_key_is_forgotten(parts: list[list[str]], type_code: str) -> None:
    found = united(parts, type_code)
    every = pa.array([key for keys in parts for key in keys], pa.string())
    assert bloom_of(found).might_contain(every).all()
    assert len(bloom_of(found).rows) <= 3


def test_few_keys_share_a_row() -> None:
    bloom = bloom_of(united([["a", "b"], ["c"], ["d", "e"]]))
    assert (len(bloom.rows), bloom.last_row_entries) == (1, 5)
    assert not bloom.might_contain(pa.array(["x", "y", "z"])).any()


def test_a_simple_filter_is_the_one_that_all_keys_would_make() -> None:
    assert united([["a", "b"], ["c"], ["d"]], "SIMPLE") == footer(["a", "b", "c", "d"], "SIMPLE")


def test_the_bounds_are_those_of_all_by_javas_order() -> None:
    found = united([["b", "\U0001f600"], ["a", "\uffee"], []])
    assert found is not None
    assert (found.min_key, found.max_key) == ("a", "\uffee")


@pytest.mark.parametrize(
    "stranger",
    [
        footer(["x"], entries=30),
        footer(["x"], "SIMPLE"),
        KeyFooter(),
        KeyFooter(footer(["x"]).bloom_text, "DYNAMIC_V0"),
    ],
    ids=["other size", "other type", "no filter", "no bounds"],
)
def test_keys_have_to_tell_where_footers_do_not(stranger: KeyFooter) -> None:
    union = KeyUnion(entries_max=60)
    union.add(footer(["a"]), rows=1, path="f")
    union.add(stranger, rows=1, path="g")
    assert union.footer() is None
