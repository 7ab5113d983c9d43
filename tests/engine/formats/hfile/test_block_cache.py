"""The cache of unpacked blocks keeps what is asked for and stays within its bounds."""

from lakewarden.engine.formats.hfile import BlockCache


def kept_bytes(cache: BlockCache, blocks: int) -> int:
    found = (cache.get("file", number) for number in range(blocks))
    return sum(len(content) for content in found if content is not None)


def test_a_block_is_found_by_file_and_offset() -> None:
    cache = BlockCache()
    cache.put("file", 1, b"one")
    assert cache.get("file", 1) == b"one"
    assert cache.get("file", 2) is None
    assert cache.get("other", 1) is None


def test_it_never_holds_more_than_its_limit() -> None:
    cache = BlockCache(limit_bytes=1000)
    for number in range(100):
        cache.put("file", number, bytes(90))
        assert kept_bytes(cache, 100) <= 1000


def test_a_block_asked_for_again_and_again_stays() -> None:
    cache = BlockCache(limit_bytes=1000)
    cache.put("file", 0, b"often")
    for number in range(1, 100):
        cache.put("file", number, bytes(90))
        assert cache.get("file", 0) == b"often"


def test_a_block_larger_than_half_of_it_is_not_kept() -> None:
    cache = BlockCache(limit_bytes=1000)
    cache.put("file", 0, bytes(501))
    assert cache.get("file", 0) is None
