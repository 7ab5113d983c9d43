"""Statistics: joined only where their bounds can be compared, and never made narrower."""

import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.changes import ColumnSummary, NewFile, TableChange
from lakewarden.engine.metadata.entries.statistics import Statistic, statistic_of, union
from lakewarden.engine.metadata.entries.statistics_entries import column_stats_entries
from lakewarden.engine.metadata.entries.value_types import ValueType, value_type
from lakewarden.engine.metadata.reading.column_stats import ColumnRange, partition_ranges
from lakewarden.engine.timeline.instants.instant import Action
from tests.engine.metadata.java_entries import of_entries
from tests.engine.metadata.table_in_memory import TableInMemory, new_file


def statistic(value: object, type_: pa.DataType) -> Statistic:
    bound = pa.scalar(value, type_)
    found = statistic_of(ColumnSummary(bound, bound, 1, int(value is None)))
    assert found is not None
    return found


def joined(*members: Statistic) -> tuple[object, object, ValueType] | None:
    whole = union(members)
    return None if whole is None else (whole.low, whole.high, whole.kind)


def test_integers_of_different_widths_meet_in_the_wider() -> None:
    members = statistic(7, pa.int32()), statistic(-(2**40), pa.int64())
    assert joined(*members) == (-(2**40), 7, ValueType(4))


def test_decimals_of_different_scales_meet_in_one_that_holds_both() -> None:
    members = (
        statistic(Decimal("1.5"), pa.decimal128(3, 1)),
        statistic(Decimal("-20.25"), pa.decimal128(4, 2)),
    )
    assert joined(*members) == (-2025, 150, ValueType(10, "4,2"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (statistic(1, pa.int64()), statistic("1", pa.string())),
        (statistic(1, pa.int64()), statistic(1.0, pa.float64())),
        (statistic(1, pa.int64()), statistic(1, pa.timestamp("us"))),
    ],
)
def test_bounds_of_unlike_types_are_not_known_together(one: Statistic, other: Statistic) -> None:
    assert joined(one, other) is None
    assert joined(other, one) is None


def test_only_nulls_of_any_type_yield_to_bounds() -> None:
    nulls = statistic(None, pa.string())
    assert joined(nulls, statistic(5, pa.int64())) == (5, 5, ValueType(4))
    assert joined(statistic(5, pa.int64()), nulls) == (5, 5, ValueType(4))


def test_a_log_of_deletes_takes_on_the_type_of_others() -> None:
    deletes = statistic_of(ColumnSummary(None, None, 0, 0))
    assert deletes is not None
    assert joined(deletes, statistic(None, pa.string())) == (None, None, ValueType(7))


@given(st.lists(st.floats(), min_size=1))
def test_nan_is_larger_than_any_number(values: list[float]) -> None:
    whole = union([statistic(value, pa.float64()) for value in values])
    assert whole is not None
    assert whole.value_count == len(values)
    has_nan = any(map(math.isnan, values))
    numbers = [value for value in values if not math.isnan(value)]
    assert isinstance(whole.high, float)
    assert math.isnan(whole.high) == has_nan
    if numbers:
        assert whole.low == min(numbers)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    )
)
def test_a_decimal_is_stored_in_the_fewest_bytes(value: Decimal) -> None:
    type_ = pa.decimal128(20, 3)
    kind, found = value_type(type_), statistic(value, type_)
    assert kind is not None
    assert found.low is not None
    stored = kind.stored(found.low)
    assert isinstance(stored, bytes)
    assert kind.plain(stored) == found.low == int(value * 1000)
    assert len(stored) == 1 or int.from_bytes(stored[1:], "big", signed=True) != found.low


def told_early(bound: pa.Scalar) -> object:
    """A bound in the form from before release 1.1."""
    summary = ColumnSummary(bound, bound, 1, 0)
    change = TableChange(instant="1", new_files=(NewFile("p", "f", 1, {"c": summary}),))
    records, _ = of_entries(column_stats_entries(change, (), is_early=True))
    (record,) = records.values()
    statistics = record["ColumnStatsMetadata"][1]
    assert statistics["valueType"] is None
    return statistics["minValue"]


def test_early_tables_get_early_wrappers() -> None:
    model = "org.apache.hudi.avro.model"
    assert told_early(pa.scalar(3, pa.date32())) == (f"{model}.DateWrapper", {"value": 3})
    assert told_early(pa.scalar("x")) == (f"{model}.StringWrapper", {"value": "x"})


def test_what_is_not_known_of_early_tables_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        told_early(pa.scalar(Decimal("1.5"), pa.decimal128(3, 1)))
    assert refused.value.code == "unsupported_early_statistics"


Values = list[float | None]


def of_partition(table: TableInMemory) -> ColumnRange:
    return partition_ranges(table.metadata.partition("partition_stats"), ["v"], ["a"])["a"]["v"]


def put(table: TableInMemory, live: dict[str, Values], new: dict[str, Values]) -> None:
    """A write of new files, after which these files are live."""
    files = [new_file("a", name, [name] * len(values), values) for name, values in new.items()]
    table.write(*files, live_files={"a": tuple(live)})


def test_a_partition_of_many_files_is_what_its_rows_are_after_any_changes() -> None:
    chance = random.Random(7)
    table = TableInMemory().create(("files", "column_stats", "partition_stats"))
    live: dict[str, Values] = {}
    for number in range(14):
        new: dict[str, Values] = {
            f"{at}-0_0-0-0_{number + 1}.parquet": [
                chance.choice([None, *map(float, range(-30, 30))]) for _ in range(3)
            ]
            for at in chance.sample(range(24), 24 if not number else chance.randint(1, 4))
        }
        groups = {name.partition("_")[0] for name in new}
        live = {one: old for one, old in live.items() if one.partition("_")[0] not in groups}
        live |= new
        put(table, live, new)
        values = [one for of_file in live.values() for one in of_file]
        known = [one for one in values if one is not None]
        found = of_partition(table)
        assert found.minimum is not None
        assert found.maximum is not None
        assert (found.minimum.as_py(), found.maximum.as_py()) == (min(known), max(known))
        assert (found.value_count, found.null_count) == (len(values), values.count(None))


@pytest.mark.parametrize("is_built", [False, True])
def test_files_that_stay_are_read_anew_after_a_build_alone(*, is_built: bool) -> None:
    table = TableInMemory().create()
    live: dict[str, Values] = {f"{at}-0_0-0-0_1.parquet": [1.0] for at in range(20)}
    put(table, live, live)
    stays, *_ = live
    # As a build would say it, that has found out more of a file.
    table.write(new_file("a", stays, ["1"], [9.0]))
    build = table.times.next()
    if is_built:
        table.complete(build, Action.INDEXING)
    new: dict[str, Values] = {"new-0_0-0-0_2.parquet": [2.0]}
    put(table, live | new, new)
    assert of_partition(table).maximum == pa.scalar(9.0 if is_built else 2.0)


def test_a_write_that_never_completed_is_not_remembered() -> None:
    table = TableInMemory().create()
    live: dict[str, Values] = {f"{at}-0_0-0-0_1.parquet": [1.0] for at in range(20)}
    put(table, live, live)
    lost = new_file("a", "lost-0_0-0-0_2.parquet", ["1"], [9.0])
    names = (*live, lost.name)
    table.tell(TableChange(instant=table.begin(), new_files=(lost,), live_files={"a": names}))
    new: dict[str, Values] = {"new-0_0-0-0_3.parquet": [2.0]}
    put(table, live | new, new)
    assert of_partition(table).maximum == pa.scalar(2.0)
