"""Hashes of record keys tell which keys may be repeated."""

import pyarrow as pa

from lakewarden.engine.read.merge.key_index import hash_keys, repeated


def test_distinct_keys_share_no_hash() -> None:
    assert not len(repeated(hash_keys(pa.array(["a", "b", "ab"]))))


def test_a_key_that_is_there_twice_or_more_often_shares_its_hash() -> None:
    hashes = hash_keys(pa.array(["a", "b", "a", "c", "c", "c"]))
    assert set(repeated(hashes).tolist()) == {int(hashes[0]), int(hashes[3])}


def test_no_keys_share_no_hash() -> None:
    assert not len(repeated(hash_keys(pa.array([], pa.string()))))
