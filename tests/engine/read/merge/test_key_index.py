"""Keys are found in an index exactly, whatever their hashes and however they are stored."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.read.merge.key_index import KeyIndex, hash_keys

TEXT = st.text(max_size=30)


def hash_by_length(keys: pa.Array) -> np.ndarray:
    """A poor hash, by which many keys collide."""
    return np.array([len(key or "") % 3 for key in keys.to_pylist()], dtype=np.uint64)


def assert_found(index: KeyIndex, known: list[str], asked: list[str | None]) -> None:
    at, found = index.find(pa.array(asked, pa.string()))
    expected = [(place, known.index(key)) for place, key in enumerate(asked) if key in known]
    assert list(zip(at.tolist(), found.tolist(), strict=True)) == expected


@given(st.lists(TEXT, unique=True), st.lists(st.one_of(st.none(), TEXT)), st.data())
def test_known_keys_are_found_and_others_are_not(
    known: list[str], strangers: list[str | None], data: st.DataObject
):
    asked = data.draw(st.permutations(known + strangers + known[:2]))
    assert_found(KeyIndex(pa.array(known, pa.string())), known, asked)


@given(st.lists(TEXT, unique=True), st.lists(st.one_of(st.none(), TEXT)))
def test_keys_that_share_a_hash_are_told_apart(known: list[str], asked: list[str | None]):
    assert_found(KeyIndex(pa.array(known, pa.string()), hash_by_length), known, asked + known)


def test_an_empty_index_knows_nothing():
    at, found = KeyIndex(pa.array([], pa.string())).find(pa.array(["", "a"]))
    assert (at.tolist(), found.tolist()) == ([], [])


def test_a_missing_key_is_not_the_empty_key():
    at, _ = KeyIndex(pa.array([""])).find(pa.array([None, ""], pa.string()))
    assert at.tolist() == [1]


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_keys_are_found_in_columns_of_other_types(kind: pa.DataType):
    asked = pa.chunked_array([["x", "key-1"], [], ["key-2", "key-22"]], pa.string()).cast(kind)
    at, found = KeyIndex(pa.array(["key-2", "key-1"])).find(asked)
    assert (at.tolist(), found.tolist()) == ([1, 2], [1, 0])


@given(st.lists(st.one_of(st.none(), TEXT), max_size=20), st.integers(0, 20))
def test_a_hash_depends_on_the_key_alone(keys: list[str | None], start: int):
    whole = hash_keys(pa.array(keys, pa.string()))
    assert hash_keys(pa.array(keys, pa.string()).slice(start)).tolist() == whole[start:].tolist()
    assert hash_keys(pa.array(keys, pa.large_string())).tolist() == whole.tolist()
    alone = [hash_keys(pa.array([key], pa.string()))[0] for key in keys]
    assert alone == whole.tolist()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 20])
def test_keys_that_differ_in_one_byte_have_different_hashes(size: int):
    keys = ["a" * size] + ["a" * place + "b" + "a" * (size - place - 1) for place in range(size)]
    assert len(set(hash_keys(pa.array(keys)).tolist())) == len(keys)


def test_more_keys_than_one_window_are_hashed_alike():
    keys = pa.array([f"key-{number}" for number in range(70_000)])
    assert hash_keys(keys)[-1] == hash_keys(keys.slice(69_999))[0]
    assert len(np.unique(hash_keys(keys))) == len(keys)
