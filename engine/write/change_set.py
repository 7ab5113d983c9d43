"""Change sets: updates and deletes of matched rows, and new rows, as one write.

UPDATE, DELETE and MERGE in SQL and their kin in Python end here, so that they mean the same on all
kinds of indexes: exactly the rows that matched, each by its partition and key. What would leave two
rows of one identity, or what merging would undo, is refused before anything is written.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.entries import OrderingValues, ordering_values
from lakewarden.engine.read.merge.fold import counting_values
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY
from lakewarden.engine.write.request import Effect, Incoming
from lakewarden.engine.write.rows.places import Places, joined_places, places_of, refused_keys
from lakewarden.engine.write.rows.prepare import fitted

Mask = npt.NDArray[np.bool_]
# More rows of repeated keys than that are refused without a look at their columns.
_COMPARED_MAX = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class ChangeSet:
    """Rows that go, rows that change, and rows that come.

    Of rows as they are, in `gone` and `old`, only the columns count that keys, partition paths and
    ordering values are made of. `new` has the rows of `old` as they shall be, in the same order.
    """

    gone: pa.Table
    old: pa.Table
    new: pa.Table
    added: pa.Table

    def without(self, left: Mask) -> "ChangeSet":
        """The same without some of the rows that change."""
        kept = pa.array(~left)
        return replace(self, old=self.old.filter(kept), new=self.new.filter(kept))

    def without_equals(self, state: Snapshot) -> "ChangeSet":
        """The same; of new rows of one key that are equal in all columns, one comes."""
        is_repeated = places_of(self.added, state).are_repeated(by_partition=True)
        repeated = np.flatnonzero(is_repeated)
        if not 0 < len(repeated) <= _COMPARED_MAX:
            return self
        texts = [repr(row) for row in self.added.take(repeated).to_pylist()]
        firsts = {text: place for place, text in reversed(list(zip(repeated, texts, strict=True)))}
        is_repeated[list(firsts.values())] = False
        return replace(self, added=self.added.filter(pa.array(~is_repeated)))

    @property
    def effect(self) -> Effect:
        return Effect(inserted=len(self.added), updated=len(self.old), deleted=len(self.gone))


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """How changes are made to a snapshot of a table."""

    state: Snapshot
    executor: Executor
    # Whether a key is one row in each partition, rather than in the table.
    by_partition: bool
    # Whether an older ordering value is refused; otherwise the row stays as it is, as with upsert.
    refuses_lowered: bool

    def incoming(self, changes: ChangeSet, known: Places | None = None) -> Incoming:
        """The changes as rows to write; `known` has the places of all rows of the added keys."""
        effect = changes.effect
        config = self.state.config
        _refuse_uncounted(changes, config.merge)
        gone, old, new, added = (
            places_of(rows, self.state)
            for rows in (changes.gone, changes.old, changes.new, changes.added)
        )
        _refuse_other_keys(old, new)
        _refuse_two_fates(gone, old)
        is_lowered = self._are_lowered(changes)
        if is_lowered.any():
            if self.refuses_lowered:
                raise _lowered(old.only(is_lowered), ", ".join(config.merge.ordering_fields))
            old, new = old.only(~is_lowered), new.only(~is_lowered)
            changes = changes.without(is_lowered)
        moved = np.asarray(pc.not_equal(new.partitions, old.partitions), dtype=bool)
        written = joined_places(new, added)
        _refuse_repeated(written, by_partition=self.by_partition)
        arriving = joined_places(new.only(moved), added) if self.by_partition else added
        leaving = joined_places(gone, old.only(moved))
        self._refuse_known(arriving, leaving, known)
        names = _identifying(config, changes.old.column_names + changes.gone.column_names)
        left = [changes.gone, changes.old.filter(pa.array(moved))]
        return Incoming(
            pa.concat_tables([changes.new, changes.added], promote_options="permissive"),
            gone=_one_table([part.select(names) for part in left if len(part)]),
            effect=effect,
        )

    def _are_lowered(self, changes: ChangeSet) -> Mask:
        """Which rows that change the table would keep as they are, since they are newer so."""
        rules = self.state.config.merge
        if rules.mode is not MergeMode.EVENT_TIME or not len(changes.old):
            return np.zeros(len(changes.old), dtype=bool)
        columns = self.state.schema().columns
        new, old = (_ordering(rows, columns, rules) for rows in (changes.new, changes.old))
        return ~new.are_at_least(old)

    def _refuse_known(self, arriving: Places, leaving: Places, known: Places | None) -> None:
        """Refuse rows that arrive where the table has a row of theirs: that one would be lost."""
        if not len(arriving):
            return
        there = known or self._known(arriving.keys)
        by_partition = self.by_partition
        there_names = there.names(by_partition=by_partition)
        # A row that leaves makes room, but not for the others of its name.
        remain = there.only(_are_not_in(there.names(by_partition=True), leaving))
        if len(remain) < len(there):
            there_names = remain.names(by_partition=by_partition)
        is_known = pc.is_in(arriving.names(by_partition=by_partition), value_set=there_names)
        if pc.any(is_known).as_py():
            raise _key_exists(arriving.only(np.asarray(is_known)))

    def _known(self, keys: pa.Array) -> Places:
        """Where the table has rows of some keys."""
        query = Query([RECORD_KEY, PARTITION_PATH], pc.field(RECORD_KEY).isin(keys))
        rows = plan_query(self.state, query).table(self.state.storage, self.executor)
        return Places.stored(rows)


def _are_not_in(names: pa.Array, places: Places) -> Mask:
    return ~np.asarray(pc.is_in(names, value_set=places.names(by_partition=True)))


def _identifying(config: TableConfig, names: list[str]) -> list[str]:
    """The columns that keys and partition paths are made of."""
    fields = (*config.identifying, *(field.name for field in config.partitions.fields))
    return [name for name in dict.fromkeys(f.partition(".")[0] for f in fields) if name in names]


def _one_table(parts: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(parts, promote_options="permissive") if parts else None


def _ordering(rows: pa.Table, columns: pa.Schema, rules: MergeRules) -> OrderingValues:
    table = fitted(rows, pa.schema([columns.field(name) for name in rules.ordering_names]))
    return ordering_values(rules.ordering(table), len(table))


def _refuse_other_keys(old: Places, new: Places) -> None:
    is_other = np.asarray(pc.not_equal(new.keys, old.keys), dtype=bool)
    if is_other.any():
        raise InvalidRequest(
            "key_changed",
            what=f"The change gives rows a new key: {refused_keys(old.only(is_other))}.",
            why="A key identifies a row: a row with a new key is another row.",
            now="Delete the rows and insert new ones.",
            keys=refused_keys(old.only(is_other)),
        )


def _refuse_two_fates(gone: Places, old: Places) -> None:
    """Refuse rows that matched twice, unless all that becomes of them is that they go."""
    names = old.names(by_partition=True)
    goes = np.asarray(pc.is_in(names, value_set=gone.names(by_partition=True)), dtype=bool)
    is_twice = goes | old.are_repeated(by_partition=True)
    if is_twice.any():
        raise repeated_keys(old.only(is_twice), "The source")


def _refuse_repeated(written: Places, *, by_partition: bool) -> None:
    repeated = written.only(written.are_repeated(by_partition=by_partition))
    if len(repeated):
        raise repeated_keys(repeated, "The source")


def repeated_keys(places: Places, what: str) -> InvalidRequest:
    return InvalidRequest(
        "repeated_keys",
        what=f"{what} has two rows of one key, and neither is newer: {refused_keys(places)}.",
        why="A table has each key once, so one of the rows would be lost.",
        now="Keep one row of each key.",
        keys=refused_keys(places),
    )


def _refuse_uncounted(changes: ChangeSet, rules: MergeRules) -> None:
    """Refuse values that merging would take for missing ones, and leave the old ones in place."""
    if rules.partial is PartialMode.NONE:
        return
    for name, counts in counting_values(changes.new, rules, {}).items():
        if name in changes.old.column_names:
            old, new = changes.old.column(name), changes.new.column(name)
            differs = (
                old.is_valid()
                if rules.partial is PartialMode.IGNORE_DEFAULTS
                else (pc.fill_null(pc.not_equal(old, new), True))
            )
            counts = counts | ~np.asarray(differs)
        if not counts.all():
            raise InvalidRequest(
                "unsupported_partial_update",
                what=f"An update cannot set such values of {name} in this table.",
                why=(
                    "The table's partial updates treat them as missing and would keep the "
                    "old values."
                ),
                now="Use other values, or delete the rows and insert complete ones.",
                column=name,
            )


def _lowered(places: Places, fields: str) -> InvalidRequest:
    return InvalidRequest(
        "ordering_lowered",
        what=f"The update lowers the ordering value of rows: {refused_keys(places)}.",
        why="The table keeps the row with the highest value, so nothing would change.",
        now=f"Raise {fields}, or leave it unchanged.",
        keys=refused_keys(places),
    )


def _key_exists(places: Places) -> InvalidRequest:
    return InvalidRequest(
        "key_exists",
        what=(
            f"The change inserts rows with keys that the table already has: {refused_keys(places)}."
        ),
        why="The existing rows would be lost.",
        now="Make the condition match the existing rows, or leave these rows out.",
        keys=refused_keys(places),
    )
