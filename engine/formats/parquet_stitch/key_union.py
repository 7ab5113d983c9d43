"""United key footers: what a stitched file's footer says of its keys, from those of its parts.

Bloom filters are joined row by row, as far as rows have room for each other's keys, and up to as
many rows as a filter may have; further ones are laid over those. No key is hashed again.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lakewarden.engine.formats.bloom import DEFAULT_ENTRIES_MAX, BloomFilter
from lakewarden.engine.formats.parquet_footer import KeyFooter


class KeyUnion:
    """Gathers the key footers of the parts of one file."""

    def __init__(self, entries_max: int = DEFAULT_ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._bloom: _Rows | None = None
        self._bounds: list[str] = []
        self._is_known = True

    def add(self, keys: KeyFooter, *, rows: int, path: str) -> None:
        """Take in the footer of a file of so many rows."""
        bloom = keys.bloom_filter(path)
        if bloom is None or (rows and (keys.min_key is None or keys.max_key is None)):
            self._is_known = False
            return
        self._bounds += [key for key in (keys.min_key, keys.max_key) if key is not None]
        if self._bloom is None:
            self._bloom = _Rows(bloom, self._entries_max)
        elif not self._bloom.took(bloom):
            self._is_known = False

    def footer(self) -> KeyFooter | None:
        """The footer of all together; None where the keys themselves have to tell."""
        if not self._is_known or self._bloom is None:
            return None
        bounds = sorted(self._bounds, key=_utf16)
        low, high = (bounds[0], bounds[-1]) if bounds else (None, None)
        bloom = self._bloom.filter()
        return KeyFooter(bloom.text(), bloom.type_code, low, high)


class _Rows:
    """The rows of a filter in the making, and how many keys each has."""

    def __init__(self, first: BloomFilter, entries_max: int) -> None:
        self._shape = first
        self._rows: list[npt.NDArray[np.uint8]] = []
        self._counts: list[int] = []
        by_entries = -(-entries_max // first.row_entries) if first.row_entries else 1
        self._rows_max = max(by_entries, len(first.rows), 1)
        self.took(first)

    def took(self, other: BloomFilter) -> bool:
        """Take in a filter; False for one of another form."""
        mine = self._shape
        form = (other.type_code, other.hash_count, other.bit_count, other.row_entries)
        if form != (mine.type_code, mine.hash_count, mine.bit_count, mine.row_entries):
            return False
        full = [other.row_entries] * (len(other.rows) - 1)
        for row, count in zip(other.rows, [*full, other.last_row_entries], strict=True):
            self._add(row, count)
        return True

    def filter(self) -> BloomFilter:
        """The filter; a new key would go to its last row."""
        total, entries = sum(self._counts), self._shape.row_entries
        last = max(total - (len(self._rows) - 1) * entries, 0)
        return replace(self._shape, rows=np.stack(self._rows), last_row_entries=last)

    def _add(self, row: npt.NDArray[np.uint8], count: int) -> None:
        for place, had in enumerate(self._counts):
            if had + count <= self._shape.row_entries:
                self._lay_over(place, row, count)
                return
        if len(self._rows) < self._rows_max:
            self._rows.append(row.copy())
            self._counts.append(count)
        else:
            self._lay_over(int(np.argmin(self._counts)), row, count)

    def _lay_over(self, place: int, row: npt.NDArray[np.uint8], count: int) -> None:
        self._rows[place] |= row
        self._counts[place] += count


def _utf16(text: str) -> bytes:
    """Java's order of texts."""
    return text.encode("utf-16-be", "surrogatepass")
