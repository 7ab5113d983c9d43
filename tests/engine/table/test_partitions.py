"""Partition fields, and the column values that partition paths spell out."""

import pytest

from lakewarden.engine.table.config import (
    PartitionField,
    PartitionKind,
    PartitionScheme,
    parse_partition_fields,
)

CITY_DAY = (PartitionField("city"), PartitionField("day"))


def test_plain_and_typed_fields() -> None:
    assert parse_partition_fields("city, day", timestamp_keys=False) == CITY_DAY
    assert parse_partition_fields("p:SIMPLE,ts:TIMESTAMP", timestamp_keys=False) == (
        PartitionField("p"),
        PartitionField("ts", PartitionKind.TIMESTAMP),
    )
    assert parse_partition_fields("ts", timestamp_keys=True) == (
        PartitionField("ts", PartitionKind.TIMESTAMP),
    )
    assert parse_partition_fields("", timestamp_keys=False) == ()


@pytest.mark.parametrize(
    ("scheme", "path", "values"),
    [
        (PartitionScheme(CITY_DAY), "Oslo/1", {"city": "Oslo", "day": "1"}),
        (
            PartitionScheme(CITY_DAY, hive_style=True),
            "city=Oslo/day=__HIVE_DEFAULT_PARTITION__",
            {"city": "Oslo", "day": None},
        ),
        (
            PartitionScheme(CITY_DAY[:1], hive_style=True, url_encoded=True),
            "city=a%2Fb%25",
            {"city": "a/b%"},
        ),
        (PartitionScheme(CITY_DAY[:1]), "a%2Fb", {"city": "a%2Fb"}),
        # A value may begin like a name; only tables that do not say their style leave it open.
        (PartitionScheme(CITY_DAY[:1]), "city=a", {"city": "city=a"}),
        (PartitionScheme(CITY_DAY[:1], says_style=False), "city=a", {"city": "a"}),
        (PartitionScheme(CITY_DAY[:1], hive_style=True), "city=city=a", {"city": "city=a"}),
        # A slash in a value made one more level; which part is which can't be told.
        (PartitionScheme(CITY_DAY[:1]), "2024/01/02", {}),
        (PartitionScheme(()), "", {}),
        (
            PartitionScheme((PartitionField("ts", PartitionKind.TIMESTAMP), PartitionField("p"))),
            "2024-01/x",
            {"p": "x"},
        ),
    ],
)
def test_values_of_a_path(
    scheme: PartitionScheme, path: str, values: dict[str, str | None]
) -> None:
    assert scheme.values(path) == values
