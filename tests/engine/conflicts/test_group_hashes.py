"""Hashes of announced groups: exact for all that is not announced, and found by all that is."""

from random import Random

import numpy as np
import pytest

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.conflicts.group_hashes import (
    NAMES_MAX,
    GroupHashes,
    bloom_path,
    excluded_by_bloom,
    hashes_path,
    named_in,
    put_hashes,
    read_hashes,
)
from lakewarden.engine.conflicts.touched_groups import Precedence
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.storage.memory import fresh_memory_storage

PLAIN, BUCKETS = ConflictStrategy(), ConflictStrategy(compares_buckets=True)
INSTANT = "20261118101500123"
PARTITIONS = ("", "reg_a", "reg_b", "reg", "a/b", "a/b/c", "a", "day=1/h=1", "day=1/h=10")


def drawn_group(chance: Random) -> FileGroupId:
    """Names that are easily taken for each other."""
    uuid = chance.choice(("8ab1", "8ab", "8ab1-1", "00000001-8ab1", "00000010-8ab1"))
    return FileGroupId(chance.choice(PARTITIONS), f"{uuid}-{chance.choice((0, 1, 10, 11))}")


def test_of_10_000_drawn_pairs_those_have_something_in_common_that_share_a_name() -> None:
    chance = Random(19)
    for _ in range(10_000):
        mine = {drawn_group(chance) for _ in range(3)}
        theirs = {drawn_group(chance) for _ in range(3)}
        found = GroupHashes.of(mine, PLAIN).among(GroupHashes.of(theirs, PLAIN).hashes)
        assert set(found) == mine & theirs


def drawn_bucket(chance: Random) -> FileGroupId:
    number = chance.choice(("00000001", "00000010", "00000011"))
    uuid = chance.choice(("-8ab1", "-00000001", "-00000010"))
    return FileGroupId(chance.choice(PARTITIONS), f"{number}{uuid}-{chance.choice((0, 1, 10))}")


def bucket_of(key: FileGroupId) -> tuple[str, int]:
    return key.partition, int(key.file_id.partition("-")[0])


def test_of_10_000_drawn_pairs_of_buckets_those_share_one_that_have_its_number() -> None:
    chance = Random(20)
    for _ in range(10_000):
        mine = {drawn_bucket(chance) for _ in range(2)}
        theirs = {drawn_bucket(chance) for _ in range(2)}
        found = GroupHashes.of(mine, BUCKETS).among(GroupHashes.of(theirs, BUCKETS).hashes)
        taken = {bucket_of(key) for key in theirs}
        assert set(found) == {key for key in mine if bucket_of(key) in taken}


def test_file_groups_of_one_bucket_count_as_the_same() -> None:
    mine = FileGroupId("p=a", "00000001-aaaa-0")
    theirs = FileGroupId("p=a", "00000001-bbbb-0")
    others = FileGroupId("p=a", "00000010-aaaa-0")
    hashes = GroupHashes.of([theirs, others], BUCKETS).hashes
    assert GroupHashes.of([mine], BUCKETS).among(hashes) == (mine,)
    assert GroupHashes.of([mine], BUCKETS).among(hashes[:0]) == ()
    assert GroupHashes.of([], BUCKETS).among(hashes) == ()


def many(count: int = 2 * NAMES_MAX) -> list[FileGroupId]:
    return [FileGroupId("p=a", f"f{number}-0") for number in range(count)]


def test_hashes_are_kept_of_many_names_only() -> None:
    storage = fresh_memory_storage()
    put_hashes(storage, INSTANT, many(NAMES_MAX), PLAIN)
    assert read_hashes(storage, INSTANT) is None
    put_hashes(storage, INSTANT, many(), PLAIN)
    announced = read_hashes(storage, INSTANT)
    assert announced is not None
    assert announced.precedence is Precedence.INSTANT
    assert np.array_equal(announced.hashes, GroupHashes.of(many(), PLAIN).hashes)
    assert storage.stat(bloom_path(INSTANT)) is None


@pytest.mark.parametrize("precedence", Precedence)
def test_hashes_tell_which_write_stays(precedence: Precedence) -> None:
    storage = fresh_memory_storage()
    put_hashes(storage, INSTANT, many(), PLAIN, precedence)
    announced = read_hashes(storage, INSTANT)
    assert announced is not None
    assert announced.precedence is precedence


def test_what_agrees_by_its_hash_is_looked_up_by_its_name() -> None:
    mine = [FileGroupId("p=a", "00000001-aaaa-0"), FileGroupId("p=a", "00000002-aaaa-0")]
    content = b"... 00000001-bbbb-0 ... 00000002-aaaa-0 ..."
    assert named_in(content, mine, PLAIN) == (mine[1],)
    assert named_in(content, mine, BUCKETS) == tuple(mine)


@pytest.mark.parametrize("length", [0, 8, 16, 100])
def test_hashes_that_were_cut_short_say_nothing(length: int) -> None:
    storage = fresh_memory_storage()
    put_hashes(storage, INSTANT, many(), PLAIN)
    storage.put(hashes_path(INSTANT), storage.read(hashes_path(INSTANT))[:length])
    assert read_hashes(storage, INSTANT) is None


def test_a_bloom_filter_excludes_none_that_was_announced() -> None:
    storage = fresh_memory_storage()
    put_hashes(storage, INSTANT, many(), PLAIN, has_bloom=True)
    others = [FileGroupId("p=b", "f1-0")]
    assert excluded_by_bloom(storage, INSTANT, others, PLAIN)
    assert not excluded_by_bloom(storage, INSTANT, [*others, many()[7]], PLAIN)


@pytest.mark.parametrize("content", [None, b"", b"AAAA"])
def test_without_a_whole_bloom_filter_nothing_is_excluded(content: bytes | None) -> None:
    storage = fresh_memory_storage()
    if content is not None:
        storage.put(bloom_path(INSTANT), content)
    assert not excluded_by_bloom(storage, INSTANT, many(), PLAIN)
