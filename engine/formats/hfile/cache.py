"""A cache of unpacked blocks, bounded in bytes; unpacking is what single lookups spend most on."""

DEFAULT_CACHE_BYTES = 32 << 20


class BlockCache:
    """Keeps the blocks asked for last, by path and offset.

    One cache may serve many files, as long as their paths differ. Blocks live in two generations:
    when the young one has half the bytes, it becomes the old one and the old one is forgotten. So
    a block asked for again within a generation stays, and nothing is ever sorted or counted.
    """

    def __init__(self, limit_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._generation_bytes = limit_bytes // 2
        self._young: dict[tuple[str, int], bytes] = {}
        self._old: dict[tuple[str, int], bytes] = {}
        self._young_bytes = 0

    def get(self, path: str, offset: int) -> bytes | None:
        """The unpacked block at an offset of a file, if it is still here."""
        key = (path, offset)
        content = self._young.get(key)
        if content is None:
            content = self._old.get(key)
            if content is not None:
                self.put(path, offset, content)
        return content

    def put(self, path: str, offset: int, content: bytes) -> None:
        """Keep a block, unless it is larger than a generation."""
        if len(content) > self._generation_bytes:
            return
        if self._young_bytes + len(content) > self._generation_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[path, offset] = content
        self._young_bytes += len(content)
