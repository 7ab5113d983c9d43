"""Identity from files: for tables whose properties do not name their index, as Java leaves them.

The ids of file groups show a bucket index, and the keys in them show how many buckets there are.

Divisions: what the keys of file groups say of the bucket count that a table was written with.

The hash of a key is the number of its bucket plus a multiple of the bucket count. Where the known
keys allow several counts, the writer has to name one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import gcd, isqrt

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.index.buckets import bucket_hashes, bucket_of
from lakewarden.engine.index.identity import (
    buckets_by_partition,
    buckets_of,
    hashed_fields,
    kept_kind,
    refuse_other_engines,
)
from lakewarden.engine.index.kinds import Buckets, Identity, IndexKind, KeyScope
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.index.options import BUCKET_COUNT, BUCKET_FIELDS
from lakewarden.engine.index.slice_keys import SliceKeys, any_key, key_columns
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.snapshot import Snapshot

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


# The code of tables that were written with buckets and without.
MIXED = "mixed_file_groups"
HASHING_FOLDER = ".hoodie/.bucket_index"
_CONSISTENT = f"{HASHING_FOLDER}/consistent_hashing_metadata"
_BY_PARTITION = f"{HASHING_FOLDER}/partition_bucket_index_meta"
# Ids are UUIDs where they are no numbers of buckets, and one in 43 of these begins with 8 digits;
# one in 4,000 with a number that low.
_LIKELY_BUCKETS = 1_000_000
# One UUID in a million begins with a number that low.
_CERTAIN_BUCKETS = 1_000
# Keys and groups that are looked at until the number of buckets is certain.
_KEYS_LOOKED_AT = 256
_GROUPS_LOOKED_AT = 16
_REMEDY = (
    "Copy its rows into a new table: Table.create(index='BUCKET'). Or stop all writers that "
    "use buckets, then call Table.set_index('SIMPLE')."
)


def identity_from_files(
    state: Snapshot, settings: Settings, existing: IndexKind | None
) -> Identity:
    """The identity that the files of a table tell; `existing` is the record index it has."""
    is_said = kept_kind(state.config) is IndexKind.BUCKET
    if state.timeline.active.completed():
        hashing = state.storage.list(HASHING_FOLDER).folders
        if _CONSISTENT in hashing:
            raise _consistent_hashing()
        if is_said or _looks_divided(state):
            if _BY_PARTITION in hashing:
                raise buckets_by_partition()
            buckets = _buckets_from_files(state, settings, is_certain=is_said)
            if buckets is not None:
                return Identity(KeyScope.PARTITION, buckets)
    elif is_said:
        return Identity(KeyScope.PARTITION, buckets_of(settings, state.config.key_fields))
    return Identity(KeyScope.PARTITION if existing is None else existing.scope)


def _looks_divided(state: Snapshot) -> bool:
    """Whether most file groups that the newest write has touched look like buckets."""
    active = state.timeline.active
    for instant in reversed(active.completed()):
        metadata = replace_payload.decode(active.read(instant), active.path(instant))
        ids = {
            *(one.file_id for some in metadata.partition_to_write_stats.values() for one in some),
            *(one for some in metadata.partition_to_replace_file_ids.values() for one in some),
        }
        if ids:
            return 2 * sum(_number(one) is not None for one in ids) >= len(ids)
    return False


def _number(file_id: str) -> int | None:
    number = bucket_of(file_id)
    return None if number is None or number >= _LIKELY_BUCKETS else number


def _buckets_from_files(state: Snapshot, settings: Settings, *, is_certain: bool) -> Buckets | None:
    """The buckets that the current file groups are; None if they are none."""
    slices, key_fields = latest_file_slices(state, None), state.config.key_fields
    refuse_other_engines(state.config, settings)
    if not slices:
        return buckets_of(settings, key_fields) if is_certain else None
    numbered = [slice_ for slice_ in slices if _number(slice_.file_id) is not None]
    groups = list(_groups(state, numbered))
    least = max((bucket_of(one.file_id) or 0 for one in numbered), default=0) + 1
    named = hashed_fields(settings, key_fields)
    choices = [named] if named else list(subsets(key_fields))
    possible = [
        one for one in (division(fields, groups, least) for fields in choices) if one.is_possible
    ]
    has_strangers = len(numbered) < len(slices)
    are_buckets = is_certain or _are_buckets(slices, numbered)
    if not are_buckets and (has_strangers or not possible):
        return None
    if has_strangers:
        raise _mixed(next(one for one in slices if _number(one.file_id) is None))
    if not possible and not named:
        raise _misplaced(least)
    return chosen_buckets(possible, settings, key_fields, is_certain=is_certain)


def _are_buckets(slices: Sequence[FileSlice], numbered: Sequence[FileSlice]) -> bool:
    """Whether file groups can hardly be anything else, whatever keys they have by now."""
    lowest = min((bucket_of(one.file_id) or 0 for one in numbered), default=_CERTAIN_BUCKETS)
    is_certain = len(numbered) > 1 or lowest < _CERTAIN_BUCKETS
    return is_certain and 2 * len(numbered) >= len(slices)


def _groups(state: Snapshot, slices: Sequence[FileSlice]) -> Iterator[GroupKeys]:
    """Keys of as many groups as are needed, those of the highest numbers first."""
    keys = SliceKeys(state.storage, key_columns(state.config), any_key, state.closed_logs)
    looked_at = 0
    ordered = sorted(slices, key=lambda one: (-(bucket_of(one.file_id) or 0), one.key))
    for slice_ in ordered[:_GROUPS_LOOKED_AT]:
        number = bucket_of(slice_.file_id)
        assert number is not None
        for batch in islice(keys.of_slice(slice_), 1):
            some = batch[:_KEYS_LOOKED_AT]
            together = some.combine_chunks() if isinstance(some, pa.ChunkedArray) else some
            yield GroupKeys(number, together.cast(pa.string()), state.config.key_fields)
            looked_at += len(some)
        if looked_at >= _KEYS_LOOKED_AT:
            return


def _consistent_hashing() -> InvalidRequest:
    return InvalidRequest(
        "unsupported_index",
        what="Lakewarden does not write tables with CONSISTENT_HASHING buckets.",
        why=(
            f"Files in {_CONSISTENT} map keys to buckets. A row in another file group would "
            "appear twice to writers that follow them."
        ),
        now="Write this table with Hudi, or copy its rows into a new table.",
        index="CONSISTENT_HASHING",
    )


def _mixed(stranger: FileSlice) -> CorruptTable:
    return CorruptTable(
        MIXED,
        what=(
            f"The file group {stranger.file_id} of partition {stranger.partition!r} is not a "
            "bucket, but other file groups are."
        ),
        why="A write without the bucket index has created it.",
        now=_REMEDY,
        file_id=stranger.file_id,
        partition=stranger.partition,
    )


def _misplaced(least: int) -> CorruptTable:
    return CorruptTable(
        MIXED,
        what=f"Some keys are in the wrong bucket of the table's {least} or more.",
        why="A write without the bucket index has put them there.",
        now=_REMEDY,
    )
