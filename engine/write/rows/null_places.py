"""Null places: where rows hold a null that their type does not let them hold, at any depth."""

from collections.abc import Iterator

import pyarrow as pa


def null_place(values: pa.Array, field: pa.Field, place: str) -> str | None:
    """The dotted place of a null that must not be; None where all is well."""
    if not field.nullable and values.null_count:
        return place
    for inner, inner_values, inner_place in _inside(values, field.type, place):
        found = null_place(inner_values, inner, inner_place)
        if found is not None:
            return found
    return None


def _inside(
    values: pa.Array, type_: pa.DataType, place: str
) -> Iterator[tuple[pa.Field, pa.Array, str]]:
    """What the values hold, leaving out what stands below a null; only where a null matters."""
    if not _is_strict(type_):
        return
    whole = values.drop_null()
    if pa.types.is_struct(type_):
        for number, inner in enumerate(type_):
            yield inner, whole.field(number), f"{place}.{inner.name}"
    elif pa.types.is_list(type_):
        yield type_.value_field, whole.flatten(), f"{place}[]"
    elif pa.types.is_map(type_):
        pair = {"key": whole.type.key_type, "value": whole.type.item_type}
        entries = whole.cast(pa.list_(pa.struct(pair))).flatten()
        yield type_.item_field, entries.field(1), f"{place}[]"


def _is_strict(type_: pa.DataType) -> bool:
    """Whether anything inside the type may not be null; keys of maps never are."""
    if pa.types.is_struct(type_):
        return any(not inner.nullable or _is_strict(inner.type) for inner in type_)
    if pa.types.is_list(type_):
        return not type_.value_field.nullable or _is_strict(type_.value_type)
    if pa.types.is_map(type_):
        return not type_.item_field.nullable or _is_strict(type_.item_type)
    return False
