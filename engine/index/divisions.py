"""Divisions: what the keys of file groups say of the bucket count that a table was written with.

The hash of a key is the number of its bucket plus a multiple of the bucket count. Where the known
keys allow several counts, the writer has to name one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd, isqrt

import pyarrow as pa

from lakewarden.engine.index.buckets import bucket_hashes
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.index.options import BUCKET_COUNT, BUCKET_FIELDS
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings

_COUNTS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Division:
    """What keys tell of the buckets that some of their fields divide them into.

    Every count of buckets that is possible divides `step`, or any does if that is 0; and none is
    less than `least`.
    """

    fields: tuple[str, ...]
    step: int
    least: int

    def allows(self, count: int) -> bool:
        return count >= self.least and self.step % count == 0

    @property
    def is_possible(self) -> bool:
        return self.step == 0 or self.step >= self.least

    @property
    def only(self) -> int | None:
        """The count of buckets, if no other one is possible."""
        has_other = any(
            self.least <= part < self.step
            for low in range(1, isqrt(self.step) + 1)
            if self.step % low == 0
            for part in (low, self.step // low)
        )
        return self.step if self.step and self.is_possible and not has_other else None


def division(fields: tuple[str, ...], groups: Sequence["GroupKeys"], least: int) -> Division:
    """What the keys of some groups tell, if these fields of them are hashed."""
    step = 0
    for group in groups:
        buckets = Buckets(fields, 1, group.key_fields)
        for rest in (bucket_hashes(group.keys, buckets) - group.number).tolist():
            if rest < 0:
                # The hash of a key is never less than its bucket.
                return Division(fields, 1, least + 1)
            step = gcd(step, rest)
    return Division(fields, step, least)


@dataclass(frozen=True, slots=True, eq=False)
class GroupKeys:
    """Some keys of a file group that may be a bucket."""

    number: int
    keys: pa.Array
    key_fields: tuple[str, ...]


def subsets(fields: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """All of some fields, then fewer and fewer of them."""
    for size in range(len(fields), 0, -1):
        yield from combinations(fields, size)


def chosen_buckets(
    possible: Sequence[Division],
    settings: Settings,
    key_fields: tuple[str, ...],
    *,
    is_certain: bool,
) -> Buckets:
    count = settings[BUCKET_COUNT]
    if is_certain or not settings.resolve(BUCKET_COUNT).is_default:
        fitting = [one for one in possible if one.allows(count)]
        if not fitting and not settings.resolve(BUCKET_COUNT).is_default:
            raise _other_buckets(count, possible)
        if len(fitting) == 1:
            return Buckets(fitting[0].fields, count, key_fields)
    elif len(possible) == 1 and possible[0].only is not None:
        return Buckets(possible[0].fields, possible[0].only, key_fields)
    raise _unknown_buckets(possible)


def _other_buckets(count: int, possible: Sequence[Division]) -> InvalidRequest:
    return InvalidRequest(
        "other_buckets",
        what=f"The table does not have {count} buckets per partition.",
        why=f"The keys in its buckets allow {_counts(possible)}.",
        now=f"Correct {BUCKET_COUNT.key} or {BUCKET_FIELDS.key}, or leave them out.",
        count=count,
    )


def _unknown_buckets(possible: Sequence[Division]) -> InvalidRequest:
    return InvalidRequest(
        "unknown_buckets",
        what="The table's files do not show how many buckets it has.",
        why=f"The keys in its buckets allow {_counts(possible)}.",
        now=(
            f"Set {BUCKET_COUNT.key} as its other writers do, and {BUCKET_FIELDS.key} if "
            "they hash a part of the key. Lakewarden checks both against the keys and keeps "
            "them."
        ),
    )


def _counts(possible: Sequence[Division]) -> str:
    parts = [f"{_counts_of(one)} of {', '.join(one.fields)}" for one in possible if one.is_possible]
    return " or ".join(parts) or "no number at all"


def _counts_of(one: Division) -> str:
    if one.step == 0:
        return f"any number from {one.least}"
    counts = [str(count) for count in range(one.least, one.step + 1) if one.step % count == 0]
    return ", ".join(counts[:_COUNTS_SHOWN])
