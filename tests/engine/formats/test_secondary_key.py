"""Secondary index keys are taken apart into what they were made of, and hashed by version."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.secondary_key import (
    HashInput,
    secondary_group_index,
    secondary_keys,
    secondary_prefixes,
    split_secondary_keys,
)
from lakewarden.engine.kernel.errors import CorruptTable

# Mostly characters that are escaped, or that a pattern may trip over.
texts = st.text(st.sampled_from("\\$\0\n\r.aé😀") | st.characters(codec="utf-8"), max_size=8)
rows = st.lists(st.tuples(st.none() | texts, texts))


def plain_escape(text: str | None) -> str:
    if text is None:
        return "\0"
    return "".join("\\" + letter if letter in "\\$\0" else letter for letter in text)


@settings(deadline=None)
@given(rows)
def test_keys_are_value_and_record_key_escaped(pairs: list[tuple[str | None, str]]) -> None:
    values = pa.array([value for value, _ in pairs], pa.string())
    record_keys = pa.array([key for _, key in pairs], pa.string())
    keys = secondary_keys(values, record_keys)
    assert keys.to_pylist() == [
        f"{plain_escape(value)}${plain_escape(key)}" for value, key in pairs
    ]
    found_values, found_keys = split_secondary_keys(keys, "some.hfile")
    assert found_values.to_pylist() == values.to_pylist()
    assert found_keys.to_pylist() == record_keys.to_pylist()


def test_prefixes_are_what_the_keys_of_a_value_begin_with() -> None:
    prefixes = secondary_prefixes(pa.array(["a$b\\", None, ""])).to_pylist()
    assert prefixes == ["a\\$b\\\\$", "\0$", "$"]


def test_a_null_is_another_value_than_a_nul_character() -> None:
    keys = secondary_keys(pa.array([None, "\0"]), pa.array(["k", "k"]))
    assert keys.to_pylist() == ["\0$k", "\\\0$k"]


@pytest.mark.parametrize(
    ("key", "hash_input", "group"),
    [
        ("Spotify$TXN-018", HashInput.VALUE, 0),
        ("Spotify$TXN-018", HashInput.WHOLE_KEY, 6),
        ("Japan Airlines$TXN-015", HashInput.VALUE, 3),
    ],
)
def test_known_file_groups(key: str, hash_input: HashInput, group: int) -> None:
    groups = secondary_group_index(pa.array([key]), 10, hash_input, "some.hfile")
    assert groups.tolist() == [group]


def test_all_records_of_a_value_share_a_file_group() -> None:
    values = pa.array(["a$\\b"] * 50)
    keys = secondary_keys(values, pa.array([f"key {number}" for number in range(50)]))
    groups = secondary_group_index(keys, 10, HashInput.VALUE, "some.hfile")
    assert len(set(groups.tolist())) == 1


@pytest.mark.parametrize("key", ["", "no separator", "escaped\\$only", "\\"])
def test_a_key_without_separator_is_corrupt(key: str) -> None:
    with pytest.raises(CorruptTable):
        split_secondary_keys(pa.array([key]), "some.hfile")


def test_texts_are_escaped_wherever_an_array_begins_and_ends() -> None:
    texts = pa.array(["a$", "b", None, "", "c\\"])
    for start in range(len(texts)):
        for end in range(start, len(texts) + 1):
            part = texts.slice(start, end - start)
            expected = [f"{plain_escape(text)}$" for text in part.to_pylist()]
            assert secondary_prefixes(part).to_pylist() == expected
