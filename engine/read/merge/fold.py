"""Folding logs: from all entries of a slice's logs to the one that stands for each key.

This is the first of two stages. Log entries meet only one another here; the outcome meets the base
file later (see `merge`). The outcome remembers the deletes that counted: what they removed, a base
file may still have, and a record that came after them must not take anything from there.

Partial updates: which values of a record count, and which are left to an older record.

Three reasons for a value not to count: its block does not have the column; it is its field's
default (mode IGNORE_DEFAULTS); it is the marker for a value the source did not send (mode
FILL_UNAVAILABLE, text and bytes only). A record that wins takes such values from the record it
heartbeat. A late record is ignored, but where the winner has a value that does not count, even a
late record's value is better than none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.read.merge.entries import NO_ROW, LogEntries, OrderingValues
from lakewarden.engine.read.merge.histories import Fates, Histories, fates, judge
from lakewarden.engine.read.merge.key_index import hash_keys, repeated
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode

# A field's default where it is not null, by the field's name.
Defaults = Mapping[str, object]


def counting_values(
    records: pa.Table, rules: MergeRules, defaults: Defaults
) -> dict[str, np.ndarray]:
    """For each column with values that don't count under the table's mode: which ones do."""
    columns = {}
    for field in records.schema:
        counts = _counts(records.column(field.name), field, rules, defaults)
        if counts is not None and not counts.all():
            columns[field.name] = counts
    return columns


def _counts(
    column: pa.ChunkedArray, field: pa.Field, rules: MergeRules, defaults: Defaults
) -> np.ndarray | None:
    if rules.partial is PartialMode.IGNORE_DEFAULTS:
        return _differs(column, defaults.get(field.name))
    if rules.partial is PartialMode.FILL_UNAVAILABLE and _holds_text(field.type):
        is_marker = pc.equal(column, pa.scalar(rules.unavailable_value.encode()).cast(field.type))
        return ~_flags(is_marker)
    return None


def _differs(column: pa.ChunkedArray, default: object) -> np.ndarray:
    if default is None:
        return _flags(column.is_valid())
    # Such a field's null is a value like any other.
    return ~_flags(pc.equal(column, pa.scalar(default, column.type)))


def _holds_text(kind: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string)
    return any(matches(kind) for matches in (*text, pa.types.is_binary, pa.types.is_large_binary))


def _flags(booleans: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(booleans.fill_null(False).to_numpy(), dtype=bool)


@dataclass(frozen=True, slots=True)
class Folded:
    """What the logs say of each key: a record (`rows` leads to it) or a delete.

    `lacks` says, for each column that some key's record leaves to the base file, for which keys.
    `rules` are those to go on with: records with gaps end the table's own partial update mode.
    """

    keys: pa.Array
    rows: np.ndarray
    is_delete: np.ndarray
    is_unconditional: np.ndarray
    records: pa.Table
    lacks: Mapping[str, np.ndarray]
    rules: MergeRules
    defaults: Defaults
    # The entries that decided the fate of each key.
    fates: Fates
    # The ordering values of all entries.
    of_entries: OrderingValues
    # Of the keys, where they are known.
    hashes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def ordering(self) -> OrderingValues:
        return self.of_entries.take(self.fates.winner)


def fold(entries: LogEntries, rules: MergeRules, defaults: Defaults | None = None) -> Folded:
    """Merge log entries among themselves; `defaults` matter only to the mode IGNORE_DEFAULTS."""
    defaults = defaults or {}
    if rules.partial is PartialMode.NONE or entries.partial_from == len(entries):
        return _fold(entries, rules, defaults)
    # From the first block of partial records on, only the gaps of records are filled.
    head = _fold(entries.between(0, entries.partial_from), rules, defaults)
    tail = entries.between(entries.partial_from, len(entries))
    folded = _fold(_continued(head, tail), replace(rules, partial=PartialMode.NONE), defaults)
    tail_places = np.arange(entries.partial_from, len(entries))
    places = np.concatenate([head.fates.winner, tail_places])
    return replace(
        folded, fates=_after(head.fates, folded.fates, places), of_entries=entries.ordering
    )


def _after(first: Fates, then: Fates, places: np.ndarray) -> Fates:
    """The fates after a second fold, whose first entries were the outcome of the first.

    Keys of the first fold are the first of the second, too; `places` leads from entries of the
    second to those of both.
    """
    wiped, cut = (
        np.where(own >= 0, places[np.maximum(own, 0)], -1) for own in (then.wiped, then.cut)
    )
    known = len(first.winner)
    for own, earlier in ((wiped, first.wiped), (cut, first.cut)):
        own[:known] = np.where(own[:known] >= 0, own[:known], earlier)
    return Fates(places[then.winner], wiped, cut)


def _fold(entries: LogEntries, rules: MergeRules, defaults: Defaults) -> Folded:
    codes, keys, hashes = _coded(entries.keys)
    counts = {**entries.present, **counting_values(entries.records, rules, defaults)}
    if counts:
        decided, rows, records, lacks = _fold_columns(entries, codes, len(keys), rules, counts)
    else:
        decided = _whole_fates(entries, codes, len(keys), rules)
        rows, records, lacks = entries.rows[decided.winner], entries.records, {}
    winner = decided.winner
    return Folded(
        keys,
        rows,
        entries.is_delete[winner],
        entries.is_unconditional[winner],
        records,
        lacks,
        rules,
        defaults,
        decided,
        entries.ordering,
        hashes,
    )


def _coded(keys: pa.Array) -> tuple[np.ndarray, pa.Array, np.ndarray | None]:
    """A number for each key, and the keys without repetition, which the numbers lead to.

    With them their hashes, where these had to be made anyway.
    """
    hashes = hash_keys(keys)
    if not len(repeated(hashes)):
        # The usual case; hashing is several times as fast as encoding.
        return np.arange(len(keys)), keys, hashes
    encoded = keys.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary, None


def _whole_fates(entries: LogEntries, codes: np.ndarray, groups: int, rules: MergeRules) -> Fates:
    """The fate of each key when every record is whole.

    Whole records take nothing from older ones. So deletes before the winner matter only where they
    are unconditional, and only to ordering values.
    """
    winner = np.zeros(groups, dtype=np.int64)
    nothing = np.full(groups, -1)
    # With repeated indices the last assignment stays.
    winner[codes] = np.arange(len(codes))
    if rules.mode is MergeMode.COMMIT_TIME:
        return Fates(winner, nothing, nothing)
    wiped = np.where(entries.is_unconditional[winner], winner, -1)
    if groups == len(codes):
        return Fates(winner, wiped, nothing)
    # Most keys have one entry; only the others need their histories looked at.
    contested = np.flatnonzero(np.bincount(codes, minlength=groups)[codes] > 1)
    order = contested[np.argsort(codes[contested], kind="stable")]
    found = fates(_histories(entries, codes, order, rules))
    mine = codes[order[found.winner]]
    winner[mine] = order[found.winner]
    wiped[mine] = _places(order, found.wiped)
    return Fates(winner, wiped, nothing)


def _places(order: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Where the given places of an order lead; -1 leads nowhere."""
    return np.where(places >= 0, order[np.maximum(places, 0)], -1)


def _histories(
    entries: LogEntries, codes: np.ndarray, order: np.ndarray, rules: MergeRules
) -> Histories:
    group = np.cumsum(np.diff(codes[order], prepend=codes[order][:1]) != 0)
    if rules.mode is MergeMode.COMMIT_TIME:
        rank = np.zeros(len(order), dtype=np.int64)
    else:
        rank = entries.ordering.take(order).ranks()
    is_delete = entries.is_delete[order]
    return Histories(
        group,
        is_delete,
        entries.is_unconditional[order],
        is_delete & (entries.rows[order] == NO_ROW),
        rank,
    )


def _fold_columns(
    entries: LogEntries,
    codes: np.ndarray,
    groups: int,
    rules: MergeRules,
    counts: Mapping[str, np.ndarray],
) -> tuple[Fates, np.ndarray, pa.Table, dict[str, np.ndarray]]:
    """Fold column by column, where records have values that don't count."""
    order = np.argsort(codes, kind="stable")
    histories = _histories(entries, codes, order, rules)
    judgement = judge(histories)
    winner = order[judgement.fates.winner]
    wiped, cut = (_places(order, own) for own in (judgement.fates.wiped, judgement.fates.cut))
    rows = entries.rows[order]
    is_record = ~entries.is_delete[winner]
    overrides = np.flatnonzero(judgement.overrides)
    fills = np.flatnonzero(judgement.fills)[::-1]
    columns, lacks = [], {}
    for name in entries.records.column_names:
        source = entries.rows[winner]
        if name in counts:
            # The last assignment stays: late values first, then overriding ones in log order.
            found = np.zeros(groups, dtype=bool)
            for places in (fills, overrides):
                giving = places[counts[name][rows[places]]]
                source[histories.group[giving]] = rows[giving]
                found[histories.group[giving]] = True
            if not found[is_record].all():
                lacks[name] = ~found
        columns.append(entries.records.column(name).take(source[is_record]))
    records = pa.Table.from_arrays(columns, schema=entries.records.schema)
    return Fates(winner, wiped, cut), _numbered(is_record), records, lacks


def _numbered(is_record: np.ndarray) -> np.ndarray:
    return np.where(is_record, np.cumsum(is_record) - 1, NO_ROW)


def _continued(head: Folded, tail: LogEntries) -> LogEntries:
    """Entries that begin with an earlier fold's outcome, as records with all columns."""
    shift = len(head.records)
    present = {
        name: np.concatenate([np.ones(shift, dtype=bool), flags])
        for name, flags in tail.present.items()
    }
    return LogEntries(
        pa.concat_arrays([head.keys, tail.keys]),
        np.concatenate([head.rows, np.where(tail.rows == NO_ROW, NO_ROW, tail.rows + shift)]),
        np.concatenate([head.is_delete, tail.is_delete]),
        np.concatenate([head.is_unconditional, tail.is_unconditional]),
        head.ordering.followed_by(tail.ordering),
        pa.concat_tables([head.records, tail.records]).combine_chunks(),
        present,
        len(head),
    )
