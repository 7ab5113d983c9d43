"""Avro schemas: names and logical types are resolved; what cannot be a table is refused by name."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import (
    NULL,
    STRING,
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest

PATH = "a/b.log"


def parsed(*fields: object, **more: object) -> RecordType:
    named = [{"name": f"f{place}", "type": type_} for place, type_ in enumerate(fields)]
    return parse_schema(json.dumps({"type": "record", "name": "r", "fields": named, **more}), PATH)


def field_type(type_: object) -> object:
    return parsed(type_).fields[0].type


@pytest.mark.parametrize("name", [one.value for one in Primitive])
def test_a_primitive_is_known_by_its_name_and_as_an_object(name: str) -> None:
    expected = PrimitiveType(Primitive(name))
    assert field_type(name) == expected
    assert field_type({"type": name}) == expected
    assert field_type({"type": {"type": name}}) == expected


def test_hints_for_java_change_nothing() -> None:
    assert field_type({"type": "string", "avro.java.string": "String"}) == STRING


def test_arrays_maps_enums_and_unions_hold_their_parts() -> None:
    assert field_type({"type": "array", "items": "string"}) == ArrayType(STRING)
    assert field_type({"type": "map", "values": "string"}) == MapType(STRING)
    assert field_type({"type": "enum", "name": "e", "symbols": ["A", "B"]}) == EnumType(
        "e", ("A", "B")
    )
    assert field_type(["null", "string"]) == UnionType((NULL, STRING))


def test_a_union_of_null_and_one_type_is_optional_in_either_order() -> None:
    for branches in (["null", "string"], ["string", "null"]):
        union = field_type(branches)
        assert isinstance(union, UnionType)
        assert union.optional == STRING


def test_other_unions_are_not_optional() -> None:
    for branches in (["string"], ["null"], ["string", "int"], ["null", "string", "int"]):
        union = field_type(branches)
        assert isinstance(union, UnionType)
        assert union.optional is None


def test_names_take_the_namespace_around_them_unless_they_bring_one() -> None:
    inner = {"type": "fixed", "name": "inside", "size": 1}
    own = {"type": "fixed", "name": "own", "namespace": "x.y", "size": 1}
    dotted = {"type": "fixed", "name": "p.q.dotted", "size": 1}
    types = [field.type for field in parsed(inner, own, dotted, namespace="a.b").fields]
    assert types == [
        FixedType("a.b.inside", 1),
        FixedType("x.y.own", 1),
        FixedType("p.q.dotted", 1),
    ]


def test_a_named_type_is_found_again_by_its_short_and_its_full_name() -> None:
    record = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}
    first, second, third = parsed(record, "inner", "a.b.inner", namespace="a.b").fields
    assert first.type == second.type == third.type


def test_names_inside_a_dotted_record_are_in_its_namespace() -> None:
    record = {
        "type": "record",
        "name": "x.y.outer",
        "fields": [{"name": "f", "type": {"type": "fixed", "name": "inner", "size": 2}}],
    }
    outer = field_type(record)
    assert isinstance(outer, RecordType)
    assert outer.fields[0].type == FixedType("x.y.inner", 2)


@pytest.mark.parametrize("meaning", [Logical.DATE, Logical.TIME_MILLIS])
def test_an_int_may_have_a_meaning(meaning: Logical) -> None:
    type_ = {"type": "int", "logicalType": meaning.value}
    assert field_type(type_) == PrimitiveType(Primitive.INT, meaning)


def test_a_meaning_that_does_not_belong_to_the_type_is_ignored() -> None:
    assert field_type({"type": "long", "logicalType": "date"}) == PrimitiveType(Primitive.LONG)
    assert field_type({"type": "int", "logicalType": "odd"}) == PrimitiveType(Primitive.INT)


def test_decimals_stand_in_bytes_and_in_fixed() -> None:
    meaning = {"logicalType": "decimal", "precision": 9, "scale": 2}
    assert field_type({"type": "bytes", **meaning}) == DecimalType(9, 2)
    fixed = {"type": "fixed", "name": "d", "size": 4, **meaning}
    assert field_type(fixed) == DecimalType(9, 2, FixedType("d", 4))


@pytest.mark.parametrize(
    "meaning",
    [
        {"precision": 0},
        {"precision": 5, "scale": 6},
        {"precision": -1},
        {"scale": 2},
        {"precision": "5"},
        {"precision": True},
    ],
)
def test_a_decimal_that_makes_no_sense_is_the_plain_type(meaning: dict[str, object]) -> None:
    type_ = {"type": "bytes", "logicalType": "decimal", **meaning}
    assert field_type(type_) == PrimitiveType(Primitive.BYTES)


def test_a_decimal_too_wide_for_its_fixed_is_the_plain_type() -> None:
    type_ = {"type": "fixed", "name": "d", "size": 2, "logicalType": "decimal", "precision": 5}
    assert field_type(type_) == FixedType("d", 2)


def test_a_default_is_kept_as_text() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "a", "type": ["null", "int"], "default": None},
                {"name": "b", "type": "int", "default": 7},
                {"name": "c", "type": "int"},
            ],
        }
    )
    assert [field.default for field in parse_schema(text, PATH).fields] == ["null", "7", None]


def test_equal_texts_give_the_same_tree() -> None:
    text = '{"type":"record","name":"once","fields":[]}'
    assert parse_schema(text, PATH) is parse_schema(text, "another path")


def test_a_record_that_contains_itself_is_refused() -> None:
    tree = {"name": "next", "type": ["null", "r"]}
    text = json.dumps({"type": "record", "name": "r", "fields": [tree]})
    with pytest.raises(InvalidRequest) as caught:
        parse_schema(text, PATH)
    assert caught.value.code == "unsupported_recursive_schema"


def test_arrays_of_nothing_are_refused() -> None:
    empty = {"type": "record", "name": "e", "fields": []}
    mostly_empty = {
        "type": "record",
        "name": "m",
        "fields": [{"name": f"n{place}", "type": "null"} for place in range(3)]
        + [{"name": "flag", "type": "boolean"}],
    }
    for items in ("null", empty, mostly_empty, ["int", mostly_empty]):
        with pytest.raises(InvalidRequest) as caught:
            parsed({"type": "array", "items": items})
        assert caught.value.code == "unsupported_schema_items"


def test_a_short_text_that_stands_for_too_many_types_is_refused() -> None:
    levels = [{"type": "record", "name": "l0", "fields": [{"name": "x", "type": "int"}]}]
    for level in range(1, 20):
        fields = [{"name": f"x{place}", "type": f"l{level - 1}"} for place in range(10)]
        levels.append({"type": "record", "name": f"l{level}", "fields": fields})
    with pytest.raises(InvalidRequest) as caught:
        parsed(*levels)
    assert caught.value.code == "unsupported_schema_size"


def test_types_nested_too_deeply_are_refused() -> None:
    type_: object = "int"
    for _ in range(150):
        type_ = {"type": "array", "items": type_}
    with pytest.raises(InvalidRequest) as caught:
        parsed(type_)
    assert caught.value.code == "unsupported_schema_depth"


def test_a_huge_fixed_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parsed({"type": "fixed", "name": "x", "size": 1 << 30})
    assert caught.value.code == "unsupported_schema_fixed"


def test_a_huge_precision_takes_no_time() -> None:
    type_ = {"type": "bytes", "logicalType": "decimal", "precision": 10**12}
    fixed = {"type": "fixed", "name": "d", "size": 9, "logicalType": "decimal", "precision": 10**12}
    assert field_type(type_) == DecimalType(10**12, 0)
    assert field_type(fixed) == DecimalType(10**12, 0, FixedType("d", 9))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        '"int"',
        "[]",
        '{"type":"record"}',
        '{"type":"record","name":"r"}',
        '{"type":"record","name":"","fields":[]}',
        '{"type":"record","name":"r","namespace":1,"fields":[]}',
        '{"type":"record","name":"r","fields":[1]}',
        '{"type":"record","name":"r","fields":[{"name":"f"}]}',
        '{"type":"record","name":"r","fields":[{"type":"int"}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":"unknown"}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":[]}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":["int","int"]}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":["int",["null"]]}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"array"}}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"fixed","name":"x"}}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"enum","name":"x"}}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":"int"},{"name":"f","type":"int"}]}',
        '{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"fixed","name":"r","size":1}}]}',
        '{"a":' * 100_000,
    ],
)
def test_a_wrong_schema_is_corrupt_and_names_the_file(text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_schema(text, PATH)
    assert caught.value.path == PATH


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["record", "fixed", "enum", "array", "map", "int", "r", "decimal", "", "null"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type name namespace fields items values size symbols logicalType precision".split()
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_schema_or_refused(schema: object) -> None:
    with contextlib.suppress(CorruptTable, InvalidRequest):
        assert isinstance(parse_schema(json.dumps(schema), PATH), RecordType)
