"""The rules of merging, told row by row in plain Python: slow, obvious, and the judge of the rest.

Rows are dictionaries. A history is a list of `Entry`, in log order. Everything follows the order
of events: each entry meets what is known of its key, and afterwards the outcome meets base rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode

Row = Mapping[str, object]
KEY = "_hoodie_record_key"


@dataclass(frozen=True)
class Entry:
    """A record (possibly one that asks for its own deletion), or a delete that names only a key."""

    key: str
    row: Row | None
    is_delete: bool
    # The ordering value is Java's default: such a delete is unconditional.
    is_default_ordered: bool
    ordering: tuple[object, ...]
    is_partial: bool = False
    # The delete that has removed what the key was before: nothing of that comes back.
    after: "Entry | None" = None

    @property
    def is_unconditional(self) -> bool:
        return self.is_delete and self.is_default_ordered


def comparable(value: object) -> tuple[object, ...]:
    match value:
        case float():
            return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
        case str():
            return (value.encode(),)
        case _:
            return (value,)


@dataclass(frozen=True)
class Model:
    """A table's rules and the columns of its records.

    `zeros` holds, for each ordering field, what a missing value counts as.
    """

    rules: MergeRules
    columns: Sequence[str]
    defaults: Mapping[str, object]
    zeros: Sequence[object]

    def fold(self, history: Sequence[Entry]) -> dict[str, Entry]:
        """Stage one: log entries among themselves."""
        known: dict[str, Entry] = {}
        fills_gaps = False
        for given in history:
            entry = replace(given, after=given) if given.is_delete else given
            fills_gaps = fills_gaps or entry.is_partial
            old = known.get(entry.key)
            known[entry.key] = entry if old is None else self._meet(old, entry, fills_gaps)
        return known

    def _meet(self, old: Entry, new: Entry, fills_gaps: bool) -> Entry:
        if new.is_unconditional:
            return new
        if old.is_unconditional:
            return old if new.row is None else replace(new, after=old)
        if self._wins(new, old):
            is_wiped = old.after is not None and old.after.is_unconditional
            last = new if new.is_delete and not is_wiped else old.after
            return replace(self._combine(new, old, fills_gaps), after=last)
        return self._combine(old, new, fills_gaps)

    def _wins(self, new: Entry, old: Entry) -> bool:
        if self.rules.mode is MergeMode.COMMIT_TIME:
            return True
        return new.is_unconditional or self._position(new) >= self._position(old)

    def _position(self, entry: Entry) -> list[tuple[object, ...]]:
        return [
            comparable(zero if value is None else value)
            for value, zero in zip(entry.ordering, self.zeros, strict=True)
        ]

    def _combine(self, high: Entry, low: Entry, fills_gaps: bool) -> Entry:
        """The winner, with the loser's values where the winner's do not count."""
        if high.is_delete or low.is_delete:
            return high
        assert high.row is not None
        assert low.row is not None
        merged = dict(high.row)
        for column in self.columns:
            if not self._counts(high.row, column, fills_gaps) and column in low.row:
                merged[column] = low.row[column]
        return replace(high, row=merged)

    def _counts(self, row: Row, column: str, fills_gaps: bool) -> bool:
        if fills_gaps or self.rules.partial is PartialMode.NONE:
            return column in row
        value = row.get(column)
        if self.rules.partial is PartialMode.IGNORE_DEFAULTS:
            return value != self.defaults.get(column)
        return value != self.rules.unavailable_value

    def merge(self, history: Sequence[Entry], base: Sequence[Row]) -> list[dict[str, object]]:
        """Stage two: what base rows and folded logs make together."""
        folded = self.fold(history)
        fills_gaps = any(entry.is_partial for entry in history)
        rows, met = [], set()
        for row in base:
            key = str(row[KEY])
            log = folded.get(key)
            met.add(key)
            outcome = row if log is None else self._against_base(row, log, fills_gaps)
            if outcome is not None:
                rows.append(outcome)
        rows += [
            entry.row for key, entry in folded.items() if key not in met and not entry.is_delete
        ]
        return [
            {column: row.get(column) for column in self.columns} for row in rows if row is not None
        ]

    def _against_base(self, row: Row, log: Entry, fills_gaps: bool) -> Row | None:
        ordering = tuple(row[name] for name in self.rules.ordering_fields)
        base = Entry(str(row[KEY]), row, False, False, ordering)
        if log.after is not None and self._wins(log.after, base):
            return None if log.is_delete else log.row
        high, low = (log, base) if self._wins(log, base) else (base, log)
        outcome = self._combine(high, low, fills_gaps)
        return None if outcome.is_delete else outcome.row
