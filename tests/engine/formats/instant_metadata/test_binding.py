"""Binding: dataclasses declare records, and every field is checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pytest

from lakewarden.engine.formats.instant_metadata.binding import (
    IRREGULAR_NAME,
    Int32,
    record_of,
    value_of,
)
from lakewarden.engine.kernel.errors import CorruptTable


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    some_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    a_text: str = "default"
    a_long: int = 7
    an_int: Int32 | None = 1
    a_flag: bool = False
    a_double: float = 0.5
    a_list: tuple[str, ...] = ()
    a_map: Mapping[str, tuple[Inner, ...]] = field(default_factory=dict)
    an_inner: Inner | None = None
    a_colour: Colour = Colour.RED
    odd: str | None = field(default=None, metadata={IRREGULAR_NAME: "ODD"})


RECORD = {
    "aText": "x",
    "aLong": 2**63 - 1,
    "anInt": -(2**31),
    "aFlag": True,
    "aDouble": 1.5,
    "aList": ["a", "b"],
    "aMap": {"k": [{"someText": "t"}]},
    "anInner": {"someText": "u"},
    "aColour": "red",
    "ODD": "o",
}
VALUE = Outer(
    a_text="x",
    a_long=2**63 - 1,
    an_int=-(2**31),
    a_flag=True,
    a_double=1.5,
    a_list=("a", "b"),
    a_map={"k": (Inner("t"),)},
    an_inner=Inner("u"),
    odd="o",
)


def test_a_record_becomes_a_value() -> None:
    assert value_of(Outer, RECORD, "p") == VALUE


def test_a_value_becomes_a_record() -> None:
    assert record_of(VALUE) == RECORD


def test_another_spelling_gives_other_names() -> None:
    assert record_of(Inner("t"), str) == {"some_text": "t"}
    assert value_of(Inner, {"some_text": "t"}, "p", str) == Inner("t")


def test_an_absent_field_has_its_default() -> None:
    assert value_of(Outer, {}, "p") == Outer()


def test_null_stays_none_where_none_is_allowed() -> None:
    assert value_of(Outer, {"anInt": None}, "p").an_int is None


def test_null_is_the_default_where_none_is_not_allowed() -> None:
    assert value_of(Outer, dict.fromkeys(RECORD), "p") == Outer(an_int=None)


def test_unknown_fields_are_ignored() -> None:
    assert value_of(Inner, {"someText": "t", "newer": 1}, "p") == Inner("t")


def test_nulls_in_a_map_are_left_out() -> None:
    assert value_of(Outer, {"aMap": {"k": None}}, "p") == Outer()


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("aText", 1),
        ("aLong", "1"),
        ("aLong", True),
        ("aLong", 1.0),
        ("aLong", 2**63),
        ("anInt", 2**31),
        ("aFlag", 0),
        ("aDouble", "1"),
        ("aDouble", 2**70),
        ("aList", "ab"),
        ("aList", [None]),
        ("aMap", []),
        ("aMap", {"k": [{"someText": 1}]}),
        ("anInner", []),
        ("anInner", {}),
        ("aColour", "green"),
    ],
)
def test_another_type_is_corruption_that_names_the_field(name: str, item: object) -> None:
    with pytest.raises(CorruptTable) as raised:
        value_of(Outer, {name: item}, "some/path")
    assert raised.value.path == "some/path"
    assert name in raised.value.why


def test_a_whole_number_is_a_double() -> None:
    assert value_of(Outer, {"aDouble": 3}, "p").a_double == 3.0
