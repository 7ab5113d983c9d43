"""Values show themselves in few lines, and become rows for Arrow and pandas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pytest

from lakewarden.engine.kernel.shown import (
    SHOWN_ROWS,
    Listed,
    Shown,
    for_people,
    row_for_people,
    row_of,
)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Item:
    id: str
    size_bytes: int
    ratio: float | None = None
    colour: Colour = Colour.RED
    files: tuple[Named, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, repr=False)
class Outcome(Shown):
    instant: str
    bytes: int
    seconds: Mapping[str, float]
    errors: tuple[str, ...] = ()


def test_a_value_shows_its_fields_one_on_a_line() -> None:
    shown = repr(Outcome("20261118101500123", 1_234_567, {"read": 60.0, "write": 15.0}))
    assert shown.splitlines() == [
        "Outcome",
        "  instant  20261118101500123",
        "  bytes    1.23 MB",
        "  seconds  1 min 15 s",
    ]


def test_a_value_wraps_long_texts_and_counts_what_is_too_much() -> None:
    errors = ("It stands still. " * 8, *(f"file {number} is gone" for number in range(9)))
    assert repr(Outcome("1", 1, {}, errors)).splitlines() == [
        "Outcome",
        "  instant  1",
        "  bytes    1 B",
        "  errors   It stands still. It stands still. It stands still. It stands still. It stands",
        "           still. It stands still. It stands still. It stands still.",
        "           file 0 is gone",
        "           file 1 is gone",
        "           file 2 is gone",
        "           file 3 is gone",
        "           ... 5 more ...",
    ]


def test_few_short_values_stand_on_one_line() -> None:
    assert repr(Outcome("1", 1, {}, ("a", "b"))).splitlines()[-1] == "  errors   a, b"


def test_a_value_within_another_says_its_fields_in_words() -> None:
    shown = repr(Outcome("1", 1, {}, (Item("a", 7, files=(Named("f"),)),)))  # type: ignore[arg-type]
    assert shown.splitlines()[-1] == '  errors   id a, size_bytes 7, colour red, files ["f"]'


def test_values_of_a_kind_show_a_table_without_columns_that_say_nothing() -> None:
    shown = repr(Listed([Item("a", 950), Item("bb", 2_000, files=(Named("f"),))]))
    assert shown.splitlines() == [
        "id  size_bytes  colour  files",
        "--  ----------  ------  -----",
        "a   950 B       red     []",
        'bb  2 KB        red     ["f"]',
    ]


def test_many_values_are_counted_and_long_ones_cut() -> None:
    lines = repr(Listed([Item(f"{number}" * 100, 1) for number in range(100)])).splitlines()
    assert len(lines) == SHOWN_ROWS + 3
    assert "... 80 more ..." in lines
    assert max(map(len, lines)) < 100


def test_a_figure_that_is_no_number_is_shown_as_it_is() -> None:
    row = {"value": float("nan"), "threshold": float("inf"), "unit": "seconds"}
    assert str(row_for_people(row)["value"]) == "nan"
    assert row_for_people(row)["threshold"] == float("inf")


def test_no_values_say_so() -> None:
    assert repr(Listed[Item]()) == "(no rows)"
    assert Listed[Item]().to_arrow().num_rows == 0


def test_a_notebook_gets_a_table_whose_texts_are_escaped() -> None:
    shown = Listed([Item("<b>", 1)])._repr_html_()
    assert "<th>size_bytes</th>" in shown
    assert "<td>&lt;b&gt;</td>" in shown
    assert "<b>" not in Outcome("<b>", 1, {})._repr_html_()


def test_values_become_rows_with_their_numbers_as_they_are() -> None:
    values = Listed([Item("a", 950, 0.5, files=(Named("f"),), options={"k": "v"}, secret="s")])
    (row,) = values.to_arrow().to_pylist()
    assert row == {
        "id": "a",
        "size_bytes": 950,
        "ratio": 0.5,
        "colour": "red",
        "files": ["f"],
        "options": '{"k": "v"}',
    }
    assert values.to_pandas()["size_bytes"].tolist() == [950]


def test_values_are_still_a_tuple() -> None:
    values = Listed([1, 2])
    assert values == (1, 2)
    assert values[:1] == (1,)
    assert not Listed[int]()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("size_bytes", 999, "999 B"),
        ("size_bytes", 1_500_000_000, "1.5 GB"),
        ("done_ratio", 0.5, "50 %"),
        ("age_seconds", 0.028, "0.028 s"),
        ("age_seconds", 90_000, "1 d 1 h"),
        ("started_at_ms", 0, "1970-01-01 00:00:00 UTC"),
        ("rows", 1_000, 1_000),
        ("size_bytes", None, None),
        ("is_bytes", True, True),
    ],
)
def test_numbers_get_units_that_people_read(name: str, value: object, shown: object) -> None:
    assert for_people(name, value) == shown


def test_a_mapping_is_its_own_row() -> None:
    assert row_of({"a": 1}) == {"a": 1}
