"""Decimal bounds in column statistics keep all their digits."""

from decimal import Decimal

import pytest

from lakewarden.engine.metadata.reading.column_stats import range_of


def wrapped(unscaled: int) -> dict[str, object]:
    octets = unscaled.to_bytes(16, "big", signed=True)
    return {"BytesWrapper": {"value": octets}}


@pytest.mark.parametrize("digits", [5, 28, 29, 38])
def test_a_decimal_bound_is_exact(digits: int) -> None:
    unscaled = -int("1234567890" * 4) // 10 ** (40 - digits)
    entry = {
        "minValue": wrapped(unscaled),
        "maxValue": wrapped(-unscaled),
        "valueType": {"typeOrdinal": 10, "additionalInfo": f"{digits},2"},
        "nullCount": 0,
        "valueCount": 1,
    }
    found = range_of(entry)
    digits_of = tuple(int(digit) for digit in str(-unscaled))
    assert found.minimum is not None
    assert found.maximum is not None
    assert found.minimum.as_py() == Decimal((1, digits_of, -2))
    assert found.maximum.as_py() == Decimal((0, digits_of, -2))
