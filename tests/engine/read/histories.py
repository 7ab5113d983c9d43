"""Random histories of a file slice: base rows, then log blocks of records and deletes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.read.merge.entries import Records
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode
from tests.engine.read.model import KEY, Entry, Model

MARKER = "?"
DEFAULTS = {"n": 7}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Few values, so that ties, defaults and negative numbers all happen often.
SMALL = st.integers(-2, 3)
ORDERINGS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int32(): SMALL,
    pa.int64(): st.one_of(SMALL, st.sampled_from([-(2**63), 2**63 - 1])),
    pa.string(): st.sampled_from(["", "a", "B", "aa", "é", "\ue000", "\U0001f600"]),
    pa.binary(): st.sampled_from([b"", b"\x7f", b"\x80", b"a"]),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5, float("inf"), float("nan")]),
    pa.float32(): st.sampled_from([0.0, -0.0, 0.5, float("-inf"), float("nan")]),
    pa.date32(): SMALL.map(lambda days: date(1970, 1, 1) + timedelta(days=days)),
    pa.timestamp("us", "UTC"): SMALL.map(lambda step: EPOCH + timedelta(microseconds=step)),
    pa.decimal128(10, 2): SMALL.map(lambda cents: Decimal(cents).scaleb(-2)),
    pa.decimal128(38, 0): st.sampled_from(
        [Decimal(n) for n in (-(10**30), -1, 0, 2**62, 2**63, 10**37)]
    ),
}
KEYS = st.sampled_from("abc")


@dataclass(frozen=True)
class History:
    """The same history twice: as blocks for the product, as entries for the model."""

    schema: pa.Schema
    rules: MergeRules
    base: list[dict[str, object]]
    parts: list[Records | Deletes]
    entries: list[Entry]

    @property
    def model(self) -> Model:
        zeros = [ZEROS[self.schema.field(name).type] for name in self.rules.ordering_fields]
        return Model(self.rules, self.schema.names, DEFAULTS, zeros)

    @property
    def base_table(self) -> pa.Table:
        return pa.Table.from_pylist(self.base, schema=self.schema)


@st.composite
def rules_of(draw: st.DrawFn, fields: Sequence[str]) -> MergeRules:
    return MergeRules(
        mode=draw(st.sampled_from(MergeMode)),
        ordering_fields=tuple(fields),
        partial=draw(st.sampled_from(PartialMode)),
        unavailable_value=MARKER,
        delete_field="op",
        delete_marker="D",
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    kinds = draw(st.lists(st.sampled_from(list(ORDERINGS)), max_size=2))
    fields = [f"ordering_{place}" for place in range(len(kinds))]
    plain = [("op", pa.string()), ("n", pa.int64()), ("text", pa.string())]
    schema = pa.schema([(KEY, pa.string()), *zip(fields, kinds, strict=True), *plain])
    rules = draw(rules_of(fields))
    parts: list[Records | Deletes] = []
    entries: list[Entry] = []
    for _ in range(draw(st.integers(0, 7))):
        if draw(st.booleans()):
            table, block_entries = draw(record_block(schema, rules))
            parts.append(table)
        else:
            deletes, block_entries = draw(delete_block(schema, rules))
            parts.append(deletes)
        entries += block_entries
    base = draw(st.lists(row(schema), max_size=6))
    return History(schema, rules, base, parts, entries)


def row(schema: pa.Schema) -> st.SearchStrategy[dict[str, object]]:
    columns: dict[str, st.SearchStrategy[object]] = {
        KEY: KEYS,
        "op": st.sampled_from([None, "I", "D"]),
        "n": st.sampled_from([None, 7, 1, 2, 3]),
        "text": st.sampled_from([None, "", "x", "y", MARKER]),
    }
    for field in schema:
        if field.name not in columns:
            columns[field.name] = st.one_of(st.none(), ORDERINGS[field.type])
    return st.fixed_dictionaries({name: columns[name] for name in schema.names})


@st.composite
def record_block(
    draw: st.DrawFn, schema: pa.Schema, rules: MergeRules
) -> tuple[Records, list[Entry]]:
    rows = draw(st.lists(row(schema), min_size=1, max_size=6))
    is_partial = draw(st.integers(0, 2)) == 0
    names = schema.names
    if is_partial:
        names = [name for name in names if name == KEY or draw(st.booleans())]
    chosen = pa.schema([schema.field(name) for name in names])
    rows = [{name: row[name] for name in names} for row in rows]
    entries = [entry_of(row, schema, rules, is_partial=is_partial) for row in rows]
    return Records(pa.Table.from_pylist(rows, schema=chosen), is_partial=is_partial), entries


def entry_of(
    row: dict[str, object], schema: pa.Schema, rules: MergeRules, *, is_partial: bool
) -> Entry:
    values = [row.get(name) for name in rules.ordering_fields]
    return Entry(
        key=str(row[KEY]),
        row=row,
        is_delete=row.get("op") == "D",
        is_default_ordered=is_javas_default(values, schema, rules),
        ordering=tuple(values),
        is_partial=is_partial,
    )


def is_javas_default(values: list[object], schema: pa.Schema, rules: MergeRules) -> bool:
    if len(values) == 1:
        is_int = pa.types.is_int32(schema.field(rules.ordering_fields[0]).type)
        return values[0] is None or (is_int and values[0] == 0)
    return not values


# What a missing ordering value counts as.
ZEROS: dict[pa.DataType, object] = {
    pa.int32(): 0,
    pa.int64(): 0,
    pa.string(): "",
    pa.binary(): b"",
    pa.bool_(): False,
    pa.float64(): 0.0,
    pa.float32(): 0.0,
    pa.date32(): date(1970, 1, 1),
    pa.timestamp("us", "UTC"): EPOCH,
    pa.decimal128(10, 2): Decimal(0),
    pa.decimal128(38, 0): Decimal(0),
}


@st.composite
def delete_block(
    draw: st.DrawFn, schema: pa.Schema, rules: MergeRules
) -> tuple[Deletes, list[Entry]]:
    kinds = [schema.field(name).type for name in rules.ordering_fields]
    keys = draw(st.lists(KEYS, max_size=4))
    unconditional = [not kinds or draw(st.booleans()) for _ in keys]
    values = [[draw(ORDERINGS[kind]) for kind in kinds] for _ in keys]
    columns = tuple(
        pa.array([own[place] for own in values], kind) for place, kind in enumerate(kinds)
    )
    deletes = Deletes(
        pa.array(keys, pa.string()),
        pa.nulls(len(keys), pa.string()),
        () if all(unconditional) else columns,
        np.array(unconditional, dtype=bool),
    )
    entries = [
        Entry(key, None, True, default, tuple(own))
        for key, own, default in zip(keys, values, unconditional, strict=True)
    ]
    return deletes, entries
