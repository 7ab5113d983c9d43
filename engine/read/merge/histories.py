"""Histories: what became of each key when its log entries met one another, in log order.

The rule, for an entry that comes after what is known of its key so far:

* An unconditional delete removes whatever came before it, and any record after it brings the key
  back, whatever its ordering value. Deletes that name only a key add nothing to it.
* Otherwise the new entry wins if its ordering value is not smaller (ties go to the newer).
  Losing entries are late: they change nothing, or only fill in columns the winner lacks.

Ordering by commit time is the same rule with all ordering values equal.

What a delete has removed stays removed: rows older than the log are judged by the deletes that
counted in it, too (see `Fates`), or values of a deleted row would come back in a new one.
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
class Fates:
    """Per group the place of the entry that decides, and of the deletes that counted; -1 for none.

    `wiped` is the last unconditional delete: nothing from before the log is left. `cut` is the last
    delete that won by its ordering value: of what is older than the log, it leaves larger ones.
    """

    winner: np.ndarray
    wiped: np.ndarray
    cut: np.ndarray


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fates, and what else has a say where records have gaps.

    Overriding entries give the columns they have, a later one before an earlier one. Filling
    entries are late: they give the columns that no overriding entry has, the first one first.
    """

    fates: Fates
    overrides: np.ndarray
    fills: np.ndarray


def fates(histories: Histories) -> Fates:
    """What decides each group's fate."""
    wiped, begin = _beginnings(histories)
    alive = np.arange(len(histories.group)) >= begin[histories.group]
    return _fates(histories, wiped, _in_order(histories, alive))


def judge(histories: Histories) -> Judgement:
    """The fates, and which entries contribute columns to the winners."""
    group, places = histories.group, np.arange(len(histories.group))
    wiped, begin = _beginnings(histories)
    alive = places >= begin[group]
    in_order = _in_order(histories, alive)
    found = _fates(histories, wiped, in_order)
    # A delete that won for a while cut off everything before it.
    overrides = in_order & (places > found.cut[group])
    first = _first(group, np.flatnonzero(overrides), len(begin), len(places))
    fills = alive & ~in_order & ~histories.is_delete & (places > first[group])
    return Judgement(found, overrides, fills)


def _fates(histories: Histories, wiped: np.ndarray, in_order: np.ndarray) -> Fates:
    group = histories.group
    winner = _last(group, np.flatnonzero(in_order), wiped)
    cut = _last(group, np.flatnonzero(in_order & histories.is_delete), np.full_like(wiped, -1))
    return Fates(winner, wiped, cut)


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
