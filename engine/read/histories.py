"""Histories: what became of each key when its log entries met one another, in log order.

The rule, for an entry that comes after what is known of its key so far:

* An unconditional delete removes whatever came before it, and any record after it brings the key
  back, whatever its ordering value. Deletes that name only a key add nothing to it.
* Otherwise the new entry wins if its ordering value is not smaller (ties go to the newer).
  Losing entries are late: they change nothing, or only fill in columns the winner lacks.

Ordering by commit time is the same rule with all ordering values equal.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Histories:
    """Entries sorted by key and, below that, in log order; one element of each array per entry."""

    # Groups count up from 0, one per key.
    group: np.ndarray
    is_delete: np.ndarray
    is_unconditional: np.ndarray
    # Deletes that name only a key, without a record of their own.
    is_bare: np.ndarray
    rank: np.ndarray


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome: `winner` per group, and what else has a say where records have gaps.

    Overriding entries give the columns they have, a later one before an earlier one. Filling
    entries are late: they give the columns that no overriding entry has, the first one first.
    """

    winner: np.ndarray
    overrides: np.ndarray
    fills: np.ndarray


def winners(histories: Histories) -> np.ndarray:
    """The place of the entry that decides each group's fate."""
    wiped, begin = _beginnings(histories)
    alive = np.arange(len(histories.group)) >= begin[histories.group]
    return _last(histories.group, np.flatnonzero(_in_order(histories, alive)), wiped)


def judge(histories: Histories) -> Judgement:
    """The winners, and which entries contribute columns to them."""
    group, places = histories.group, np.arange(len(histories.group))
    wiped, begin = _beginnings(histories)
    alive = places >= begin[group]
    in_order = _in_order(histories, alive)
    winner = _last(group, np.flatnonzero(in_order), wiped)
    # A delete that won for a while cut off everything before it.
    cut = _last(group, np.flatnonzero(in_order & histories.is_delete), np.full_like(begin, -1))
    overrides = in_order & (places > cut[group])
    first = _first(group, np.flatnonzero(overrides), len(begin), len(places))
    fills = alive & ~in_order & ~histories.is_delete & (places > first[group])
    return Judgement(winner, overrides, fills)


def _beginnings(histories: Histories) -> tuple[np.ndarray, np.ndarray]:
    """Per group: its last unconditional delete (or -1), and the first entry that counts after it.

    The latter is past the end when nothing counts after the delete.
    """
    group, count = histories.group, len(histories.group)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    wiped = _last(
        group, np.flatnonzero(histories.is_unconditional), np.full(len(first), -1, dtype=np.int64)
    )
    after = np.arange(count) > wiped[group]
    revived = _first(group, np.flatnonzero(after & ~histories.is_bare), len(first), count)
    return wiped, np.where(wiped >= 0, revived, first)


def _in_order(histories: Histories, alive: np.ndarray) -> np.ndarray:
    """Which entries are not smaller than all living ones before them in their group."""
    if not len(alive):
        return alive
    # One rising staircase over all groups: the running maximum never reaches into the next group.
    step = int(histories.rank.max()) + 2
    height = histories.group * step + np.where(alive, histories.rank + 1, 0)
    return np.asarray(alive & (height == np.maximum.accumulate(height)))


def _last(group: np.ndarray, places: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Per group the last of some places, given in ascending order."""
    result = otherwise.copy()
    # With repeated indices the last assignment stays.
    result[group[places]] = places
    return result


def _first(group: np.ndarray, places: np.ndarray, groups: int, otherwise: int) -> np.ndarray:
    result = np.full(groups, otherwise, dtype=np.int64)
    result[group[places[::-1]]] = places[::-1]
    return result
