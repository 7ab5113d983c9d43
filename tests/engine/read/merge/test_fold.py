"""Log entries among themselves and against base rows: the cases one should know by name."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.read.merge.entries import Records, log_entries
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.merge import Merger, Tally
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode

KEY = "_hoodie_record_key"
SCHEMA = pa.schema([(KEY, pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string())])
EVENT_TIME = MergeRules(MergeMode.EVENT_TIME, ("ts",))
COMMIT_TIME = MergeRules(MergeMode.COMMIT_TIME, ("ts",))

Part = Records | Deletes


def table(*rows: Mapping[str, object], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist([{KEY: "k", **row} for row in rows], schema=schema)


def upsert(**row: object) -> Records:
    return Records(table(row))


def update(**row: object) -> Records:
    """A block of records that have only the given columns."""
    names = [name for name in SCHEMA.names if name == KEY or name in row]
    return Records(
        table(row, schema=pa.schema([SCHEMA.field(name) for name in names])), is_partial=True
    )


def delete(ts: int | None = None, key: str = "k") -> Deletes:
    ordering = () if ts is None else (pa.array([ts]),)
    return Deletes(pa.array([key]), pa.nulls(1, pa.string()), ordering, np.array([ts is None]))


def after(
    parts: Sequence[Part],
    rules: MergeRules = EVENT_TIME,
    base: Sequence[Mapping[str, object]] = (),
) -> list[tuple[object, ...]]:
    merger = Merger(fold(log_entries(parts, SCHEMA, rules), rules))
    tables = [merger.merge_batch(table(*base)), *merger.updated(), merger.rest()]
    rows = pa.concat_tables(tables).to_pylist()
    return [(row["ts"], row["a"], row["b"]) for row in rows]


def test_by_commit_time_the_later_record_wins():
    assert after([upsert(ts=9, a="x"), upsert(ts=1, a="y")], COMMIT_TIME) == [(1, "y", None)]


def test_by_commit_time_a_base_row_always_loses():
    assert after([upsert(ts=1, a="x")], COMMIT_TIME, [{"ts": 9}]) == [(1, "x", None)]


def test_by_event_time_the_larger_ordering_value_wins():
    assert after([upsert(ts=9, a="x"), upsert(ts=1, a="y")]) == [(9, "x", None)]


def test_a_tie_goes_to_the_newer():
    assert after([upsert(ts=9, a="x"), upsert(ts=9, a="y")], base=[{"ts": 9}]) == [(9, "y", None)]


def test_a_base_row_with_a_larger_ordering_value_stays():
    assert after([upsert(ts=1, a="x")], base=[{"ts": 2, "a": "base"}]) == [(2, "base", None)]


def test_a_missing_ordering_value_counts_as_zero():
    assert after([upsert(ts=None, a="x"), upsert(ts=-1, a="y")]) == [(None, "x", None)]
    assert after([upsert(ts=None, a="x"), upsert(ts=0, a="y")]) == [(0, "y", None)]


def test_an_unconditional_delete_removes_a_newer_base_row():
    assert after([delete()], base=[{"ts": 99}]) == []


def test_a_delete_removes_a_base_row_with_the_same_ordering_value():
    assert after([delete(5)], base=[{"ts": 5}]) == []


def test_a_delete_with_a_smaller_ordering_value_removes_nothing():
    assert after([delete(4)], base=[{"ts": 5}]) == [(5, None, None)]


def test_a_delete_stays_against_a_later_record_with_a_smaller_ordering_value():
    assert after([delete(5), upsert(ts=4, a="x")]) == []


def test_any_record_revives_a_key_after_an_unconditional_delete():
    assert after([upsert(ts=9, a="x"), delete(), upsert(ts=1, a="y")]) == [(1, "y", None)]


def test_a_revived_record_takes_the_place_of_the_row_that_was_deleted():
    assert after([delete(), upsert(ts=1, a="x")], base=[{"ts": 10}]) == [(1, "x", None)]


def test_a_delete_that_came_too_late_for_a_base_row_leaves_it_its_values():
    parts = [delete(5), update(ts=9, a="x")]
    assert after(parts, base=[{"ts": 7, "b": "base"}]) == [(9, "x", "base")]
    assert after(parts, base=[{"ts": 5, "b": "deleted"}]) == [(9, "x", None)]


def test_a_delete_after_an_unconditional_one_does_not_weaken_it():
    assert after([delete(), delete(3)], base=[{"ts": 10}]) == []


def test_what_an_unconditional_delete_removed_does_not_come_back_by_its_ordering_value():
    assert after([upsert(ts=9, a="x"), delete(), upsert(ts=1, a="y"), upsert(ts=2, a="z")]) == [
        (2, "z", None)
    ]


def test_base_rows_with_the_same_key_are_treated_alike():
    base = [{"ts": 1, "a": "one"}, {"ts": 3, "a": "two"}]
    assert sorted(after([upsert(ts=2, a="x")], base=base)) == [(2, "x", None), (3, "two", None)]


def test_keys_that_only_the_logs_know_come_at_the_end():
    merger = Merger(fold(log_entries([upsert(ts=1, a="x")], SCHEMA, EVENT_TIME), EVENT_TIME))
    base = table({KEY: "other", "ts": 1})
    assert merger.merge_batch(base).equals(base)
    assert merger.rest().column("a").to_pylist() == ["x"]
    assert merger.rest().num_rows == 0


def test_the_tally_counts_what_changed():
    parts = [upsert(ts=1, a="x"), Records(table({KEY: "new", "ts": 1})), delete(key="gone")]
    merger = Merger(fold(log_entries(parts, SCHEMA, EVENT_TIME), EVENT_TIME))
    merger.merge_batch(table({"ts": 1}, {KEY: "gone", "ts": 1}, {KEY: "other", "ts": 1}))
    merger.rest()
    assert merger.tally == Tally(updates=1, deletes=1, inserts=1)


def test_record_batches_are_merged_like_tables():
    merger = Merger(fold(log_entries([delete()], SCHEMA, EVENT_TIME), EVENT_TIME))
    (batch,) = table({"ts": 1}, {KEY: "other"}).to_batches()
    assert merger.merge_batch(batch).column(KEY).to_pylist() == ["other"]


def test_a_record_replaces_each_of_several_rows_of_its_key_wherever_they_are():
    parts = [upsert(ts=2, a="x"), Records(table({KEY: "late", "ts": 1}))]
    merger = Merger(fold(log_entries(parts, SCHEMA, EVENT_TIME), EVENT_TIME))
    merger.merge_batch(table({"ts": 1}, {KEY: "late", "ts": 3}))
    merger.merge_batch(table({"ts": 1}, {"ts": 1}))
    assert [row["a"] for part in merger.updated() for row in part.to_pylist()] == ["x"] * 3
    assert not list(merger.updated())
    assert merger.rest().num_rows == 0
    assert merger.tally == Tally(updates=3)


def test_a_record_without_key_is_refused():
    with pytest.raises(CorruptTable) as caught:
        log_entries([Records(table({KEY: None}))], SCHEMA, EVENT_TIME)
    assert caught.value.code == "record_without_key"


def test_a_partial_update_leaves_other_columns_to_the_base_row():
    base = [{"ts": 1, "a": "a", "b": "b"}]
    assert after([update(ts=2, a="x")], base=base) == [(2, "x", "b")]


def test_a_partial_update_to_null_is_an_update():
    assert after([update(ts=2, a=None)], base=[{"ts": 1, "a": "a", "b": "b"}]) == [(2, None, "b")]


def test_partial_updates_of_different_columns_add_up():
    parts = [update(ts=2, a="x"), update(ts=3, b="y")]
    assert after(parts, base=[{"ts": 1, "a": "a", "b": "b"}]) == [(3, "x", "y")]


def test_a_late_partial_update_is_ignored_as_a_whole():
    parts = [upsert(ts=5, a="x", b="y"), update(ts=4, b="late")]
    assert after(parts) == [(5, "x", "y")]
    assert after([update(ts=4, b="late")], base=[{"ts": 5, "b": "b"}]) == [(5, None, "b")]


def test_a_late_partial_update_gives_columns_that_the_winner_lacks():
    parts = [update(ts=5, a="x"), update(ts=4, a="late", b="late"), update(ts=3, b="later")]
    assert after(parts, base=[{"ts": 1, "a": "a", "b": "b"}]) == [(5, "x", "late")]


def test_a_partial_update_after_a_delete_begins_with_nothing():
    parts = [upsert(ts=1, a="x", b="y"), delete(2), update(ts=3, a="z")]
    assert after(parts) == [(3, "z", None)]


def test_a_partial_update_without_an_older_record_has_nulls():
    assert after([update(ts=1, a="x")]) == [(1, "x", None)]


def test_ignoring_defaults_a_null_keeps_the_older_value():
    rules = MergeRules(MergeMode.COMMIT_TIME, (), PartialMode.IGNORE_DEFAULTS)
    parts = [upsert(ts=1, a="x"), upsert(ts=None, b="y")]
    assert after(parts, rules, [{"ts": 9, "a": "a", "b": "b"}]) == [(1, "x", "y")]


@pytest.mark.parametrize("partial", [PartialMode.IGNORE_DEFAULTS, PartialMode.FILL_UNAVAILABLE])
@pytest.mark.parametrize("mode", MergeMode)
@pytest.mark.parametrize("removed", [delete(), delete(5)], ids=["unconditional", "by time"])
def test_a_row_after_a_delete_takes_no_values_from_what_was_deleted(
    partial: PartialMode, mode: MergeMode, removed: Deletes
):
    rules = MergeRules(mode, ("ts",), partial, unavailable_value="?")
    lacking = None if partial is PartialMode.IGNORE_DEFAULTS else "?"
    parts = [upsert(ts=2, a="log", b="log"), removed, upsert(ts=9, a="new", b=lacking)]
    assert after(parts, rules, [{"ts": 1, "a": "base", "b": "base"}]) == [(9, "new", lacking)]
    filled = [*parts, upsert(ts=10, a=lacking, b="later")]
    assert after(filled, rules, [{"ts": 1, "a": "base", "b": "base"}]) == [(10, "new", "later")]


def test_partial_records_after_a_delete_take_no_values_from_what_was_deleted():
    rules = MergeRules(MergeMode.COMMIT_TIME, (), PartialMode.IGNORE_DEFAULTS)
    parts = [delete(), upsert(ts=2, a="x"), update(ts=3, a="y")]
    assert after(parts, rules, [{"ts": 1, "a": "a", "b": "deleted"}]) == [(3, "y", None)]


def test_ignoring_defaults_a_late_record_fills_the_gaps_of_a_base_row():
    rules = MergeRules(MergeMode.EVENT_TIME, ("ts",), PartialMode.IGNORE_DEFAULTS)
    late = [upsert(ts=1, a="late", b="late")]
    assert after(late, rules, [{"ts": 9, "a": None, "b": "b"}]) == [(9, "late", "b")]


def test_an_unavailable_value_keeps_the_older_one_but_null_does_not():
    rules = MergeRules(
        MergeMode.COMMIT_TIME, (), PartialMode.FILL_UNAVAILABLE, unavailable_value="?"
    )
    assert after([upsert(ts=2, a="?", b=None)], rules, [{"a": "a", "b": "b"}]) == [(2, "a", None)]


def test_partial_records_end_the_mode_of_the_table():
    rules = MergeRules(MergeMode.COMMIT_TIME, (), PartialMode.IGNORE_DEFAULTS)
    parts = [upsert(ts=1, a="x"), update(ts=2, b="y"), upsert(ts=3, a=None, b=None)]
    assert after(parts, rules, [{"a": "a", "b": "b"}]) == [(3, None, None)]


def test_a_delete_with_a_narrower_ordering_type_is_compared():
    deletes = Deletes(
        pa.array(["k"]),
        pa.nulls(1, pa.string()),
        (pa.array([7], pa.int32()),),
        np.array([False]),
    )
    assert after([deletes], base=[{"ts": 2**40}]) == [(2**40, None, None)]
    assert after([deletes], base=[{"ts": 7}]) == []


def test_a_delete_with_an_ordering_value_of_another_kind_is_refused():
    deletes = Deletes(
        pa.array(["k"]), pa.nulls(1, pa.string()), (pa.array(["x"]),), np.array([False])
    )
    with pytest.raises(InvalidRequest) as caught:
        log_entries([deletes], SCHEMA, EVENT_TIME)
    assert caught.value.code == "unsupported_delete_ordering"


def test_a_delete_with_too_few_ordering_values_is_refused():
    rules = MergeRules(MergeMode.EVENT_TIME, ("ts", "a"))
    with pytest.raises(InvalidRequest) as caught:
        log_entries([delete(5)], SCHEMA, rules)
    assert caught.value.code == "unsupported_delete_ordering"


@pytest.mark.parametrize(
    ("kind", "stored"),
    [(pa.date32(), pa.int32()), (pa.timestamp("us", "UTC"), pa.int64())],
)
def test_dates_and_times_in_deletes_may_be_plain_numbers(kind: pa.DataType, stored: pa.DataType):
    schema = pa.schema([(KEY, pa.string()), ("at", kind)])
    rules = MergeRules(MergeMode.EVENT_TIME, ("at",))
    deletes = Deletes(
        pa.array(["k"]), pa.nulls(1, pa.string()), (pa.array([5], stored),), np.array([False])
    )
    merger = Merger(fold(log_entries([deletes], schema, rules), rules))
    base = pa.table({KEY: ["k", "k"], "at": pa.array([5, 6], stored).cast(kind)}, schema=schema)
    assert merger.merge_batch(base).column("at").cast(stored).to_pylist() == [6]


@pytest.mark.parametrize(("kind", "is_removed"), [(pa.int32(), True), (pa.int64(), False)])
def test_a_marked_record_with_javas_default_ordering_value_removes_anything(
    kind: pa.DataType, is_removed: bool
):
    schema = pa.schema([(KEY, pa.string()), ("n", kind), ("_hoodie_is_deleted", pa.bool_())])
    rules = MergeRules(MergeMode.EVENT_TIME, ("n",))
    rows = {KEY: ["k"], "n": pa.array([0], kind), "_hoodie_is_deleted": [True]}
    log = Records(pa.table(rows, schema=schema))
    merger = Merger(fold(log_entries([log], schema, rules), rules))
    base = pa.table({KEY: ["k"], "n": pa.array([9], kind)} | {"_hoodie_is_deleted": [False]})
    assert (len(merger.merge_batch(base.cast(schema))) == 0) is is_removed


def test_microseconds_in_deletes_meet_timestamps_of_any_unit():
    schema = pa.schema([(KEY, pa.string()), ("at", pa.timestamp("ms", "UTC"))])
    rules = MergeRules(MergeMode.EVENT_TIME, ("at",))
    deletes = Deletes(
        pa.array(["k"]), pa.nulls(1, pa.string()), (pa.array([5000]),), np.array([False])
    )
    merger = Merger(fold(log_entries([deletes], schema, rules), rules))
    base = pa.table({KEY: ["k", "k"], "at": pa.array([5, 6]).cast(schema.field("at").type)})
    assert merger.merge_batch(base).column("at").cast(pa.int64()).to_pylist() == [6]
