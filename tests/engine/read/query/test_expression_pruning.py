"""IndexExpression indexes serve filters in text and filters on their column, and lose no row."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.metadata.entries.expressions import IndexExpression
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.read.query.expression_pruning import implied
from lakewarden.engine.storage.memory import fresh_memory_storage

DAY = 86_400
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("name", pa.string()),
        ("ts", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
NAMES = ["Oslo", "stra\u00dfe", "\u0130zmir"]
INDEXES = {
    "by_day": (["ts"], "column_stats", {"expr": "from_unixtime", "format": "yyyy-MM-dd"}),
    "by_year": (["at"], "column_stats", {"expr": "year"}),
    "by_date": (["at"], "column_stats", {"expr": "date_format", "format": "yyyy/MM"}),
    "by_up": (["name"], "bloom_filters", {"expr": "upper"}),
    "by_head": (["name"], "column_stats", {"expr": "substring", "pos": "1", "len": "2"}),
}


@pytest.fixture(scope="module")
def places() -> Table:
    """One file for each of three days in three years."""
    table = Table.create(
        "places",
        SCHEMA,
        key=["id"],
        partition=["p"],
        storage=fresh_memory_storage(),
        properties={
            "hoodie.parquet.small.file.limit": 0,
            "lakewarden.index.expression.timezone": "UTC",
            "hoodie.metadata.index.column.stats.enable": "false",
        },
    )
    for step, name in enumerate(NAMES):
        at = datetime(2024 + step, 1, 1, tzinfo=UTC)
        row = {"id": f"k{step}", "p": "a", "name": name, "ts": step * DAY + 5, "at": at}
        table.insert(pa.Table.from_pylist([row], SCHEMA))
    for name, (columns, kind, options) in INDEXES.items():
        table.create_index(name, columns, kind, options)
    return table


@pytest.mark.parametrize(
    ("text", "index", "skipped", "ids"),
    [
        ("from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-02'", "by_day", 2, ["k1"]),
        ("from_unixtime(ts, 'yyyy-MM-dd') in ('1970-01-01', 'x')", "by_day", 2, ["k0"]),
        ("'1970-01-02' <= FROM_UNIXTIME(ts, 'yyyy-MM-dd')", "by_day", 1, ["k1", "k2"]),
        (f"ts = {DAY + 5}", "by_day", 2, ["k1"]),
        (f"ts > {DAY + 5}", "by_day", 1, ["k2"]),
        (f"ts between {DAY} and {DAY + 9}", "by_day", 1, ["k1"]),
        ("year(at) = 2025", "by_year", 2, ["k1"]),
        ("at < '2024-06-01'", "by_year", 2, ["k0"]),
        ("date_format(at, 'yyyy/MM') = '2026/01'", "by_date", 2, ["k2"]),
        ("at >= '2025-01-01'", "by_date", 1, ["k1", "k2"]),
        ("upper(name) = 'STRASSE'", "by_up", 2, ["k1"]),
        ("upper(name) in ('OSLO', '\u0130ZMIR')", "by_up", 1, ["k0", "k2"]),
        ("name = 'Oslo'", "by_up", 2, ["k0"]),
        ("substring(name, 1, 2) = 'st'", "by_head", 2, ["k1"]),
        ("substr(name, 1, 2) > 'P'", "by_head", 1, ["k1", "k2"]),
        ("name in ('Oslo', 'Bergen')", "by_head", 2, ["k0"]),
    ],
)
def test_the_index_of_a_function_serves_it_and_its_column(
    places: Table, text: str, index: str, skipped: int, ids: list[str]
) -> None:
    uses = {one.index: one for one in places.explain(filter=text).indexes}
    found = places.read_arrow(["id"], filter=text).column("id").to_pylist()
    plain = places.read_arrow(["id"], filter=text, use_metadata=False).column("id").to_pylist()
    assert sorted(found) == sorted(plain) == ids
    assert uses[index].reason is None
    # Several indexes of a column share what is skipped.
    of_column = [one for one in uses.values() if INDEXES[one.index][0] == INDEXES[index][0]]
    assert sum(one.skipped_count for one in of_column) >= skipped


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("from_unixtime(ts, 'yyyy-MM') = '1970-01'", "by_day"),
        # Texts of years before the first look like those of later years.
        (f"ts <= {DAY}", "by_day"),
        (f"not ts = {DAY}", "by_day"),
        ("year(at) = 2025 or ts = 5", "by_year"),
        ("name > 'Oslo'", "by_up"),
    ],
)
def test_an_index_that_says_nothing_is_named_with_the_reason(
    places: Table, text: str, index: str
) -> None:
    uses = {one.index: one for one in places.explain(filter=text).indexes}
    assert index not in uses or uses[index].reason is not None
    assert len(places.explain(filter=text).skipped) == 0 or text.startswith("name")


FUNCTIONS = [
    IndexExpression("from_unixtime", {"format": "yyyy-MM-dd"}),
    IndexExpression("from_unixtime", {"format": "yyyy"}),
    IndexExpression("from_unixtime", {"format": "yyyy-dd"}),
    IndexExpression("from_unixtime", {"format": "dd"}),
    IndexExpression("identity", {}),
]
# From about 290 years before the first to the year 12,600.
seconds = st.integers(-71_000_000_000, 335_000_000_000)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(FUNCTIONS),
    st.lists(seconds, min_size=1, max_size=4),
    st.sampled_from(["=", ">", ">=", "<", "<=", "in"]),
    st.data(),
)
def test_bounds_of_results_exclude_no_file_with_a_row(
    expression: IndexExpression, values: list[int], operator: str, data: st.DataObject
) -> None:
    """A file's bounds may match wherever one of its rows does."""
    bound = data.draw(st.sampled_from(values) | seconds)
    asked: object = [bound] if operator == "in" else bound
    file = pa.table({"c": pa.array(values, pa.int64())})
    row_filter = bind_filter([("c", operator, asked)], file.schema)
    assert row_filter is not None
    results = expression.of(file.column("c"))
    least, most = min(results.to_pylist()), max(results.to_pylist())
    alternatives = implied(expression, [("c", operator, asked)], pa.int64(), [])
    if len(row_filter.apply(file)):
        assert any(
            all(_may_hold(least, most, *need) for need in group) for group in alternatives
        ), (results, alternatives)


def _may_hold(least: object, most: object, name: str, operator: str, value: object) -> bool:
    match operator:
        case "in":
            return any(least <= one <= most for one in value)  # type: ignore[operator, attr-defined]
        case ">=":
            return most >= value  # type: ignore[operator]
        case "<=":
            return least <= value  # type: ignore[operator]
    return least < value  # type: ignore[operator]
