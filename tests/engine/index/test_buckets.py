"""A key's bucket is the one that Java gives it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.index.buckets import bucket_file_id, bucket_numbers, bucket_of, hashed_values
from lakewarden.engine.index.kinds import Buckets

TWO_OF_THREE = Buckets(("a", "c"), 1 << 20, ("a", "b", "c"))
FRESH = "11111111-2222-3333-4444-555555555555"


def java_hash(text: str) -> int:
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def java_list_hash(values: list[str]) -> int:
    value = 1
    for one in values:
        value = (31 * value + java_hash(one)) & 0xFFFFFFFF
    return value


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        # The first ones are cases of a test of Hudi's own.
        ("id:1,id2:2,2", "id,id2", ["1", "2,2"]),
        ("id1:1,id2:2,2,id3:3", "id2", ["2,2"]),
        ("id1:1,1,1,id2:,2,2,,id3:3", "id2", [",2,2,"]),
        (
            "id1:1,,,id2:2024-10-22 14:11:53.023,id3:,,3,id4:::1:2::4::",
            "id1,id2,id3,id4",
            ["1,,", "2024-10-22 14:11:53.023", ",,3", "::1:2::4::"],
        ),
        ("id:1,id2:__null__,id3:__empty__", "id,id2,id3", ["1", "", ""]),
        ("2024-10-22 14:11:53,023", "id", ["2024-10-22 14:11:53,023"]),
    ],
)
def test_values_are_taken_out_of_a_key_as_java_does_it(
    key: str, fields: str, values: list[str]
) -> None:
    names = tuple(fields.split(","))
    assert hashed_values(key, Buckets(names, 8, names)) == values


@given(st.lists(st.text(), max_size=8), st.integers(1, 300))
def test_a_plain_key_is_hashed_whole(keys: list[str], count: int) -> None:
    plain = [key.replace(":", "") for key in keys]
    expected = [(java_list_hash([key]) & 0x7FFFFFFF) % count for key in plain]
    buckets = Buckets(("id",), count, ("id",))
    assert bucket_numbers(pa.array(plain, pa.string()), buckets).tolist() == expected


VALUES = st.one_of(
    st.text(max_size=5), st.sampled_from(["__null__", "__empty__", "1,a:2", "x:y", ",", "\n"])
)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6))
def test_of_a_composite_key_the_chosen_fields_are_hashed(rows: list[tuple[str, str, str]]) -> None:
    keys = [f"a:{one},b:{two},c:{three}" for one, two, three in rows]
    expected = [
        (java_list_hash(hashed_values(key, TWO_OF_THREE)) & 0x7FFFFFFF) % TWO_OF_THREE.count
        for key in keys
    ]
    assert bucket_numbers(pa.array(keys, pa.string()), TWO_OF_THREE).tolist() == expected


@given(st.text(alphabet="ab:,", max_size=20))
def test_any_key_has_a_bucket(key: str) -> None:
    (number,) = bucket_numbers(pa.array([key]), Buckets(("a",), 7, ("a", "b")))
    assert 0 <= number < 7


def test_a_file_id_tells_its_bucket() -> None:
    file_id = bucket_file_id(12, FRESH)
    assert file_id == "00000012-2222-3333-4444-555555555555-0"
    assert bucket_of(file_id) == 12


@pytest.mark.parametrize("file_id", ["abcdef01-2222-0", "1", "٠٠٠٠٠٠٠١-2222-0"])
def test_other_file_ids_tell_no_bucket(file_id: str) -> None:
    assert bucket_of(file_id) is None
