"""Partition paths of rows that are to be written; the expected ones were made by Hudi 1.2."""

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import LOCAL
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.partition_paths import (
    TIMESTAMPS_AS_TEXT,
    TIMESTAMPS_KEY,
    partition_paths,
)
from tests.engine.table.table_properties import config_of, timebased

NULL = "__HIVE_DEFAULT_PARTITION__"
HIVE = {"hoodie__datasource__write__hive_style_partitioning": "true"}
ENCODED = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
SLASHED = {
    "hoodie__table__partition_extractor_class": "org.apache.hudi.hive."
    "SlashEncodedDayPartitionValueExtractor"
}
TIMESTAMP = {"hoodie__table__keygenerator__type": "TIMESTAMP"}


def paths(config: TableConfig, **columns: object) -> list[str]:
    found: list[str] = partition_paths(pa.table(columns), config).to_pylist()
    return found


def test_a_table_without_partitions_has_one_path() -> None:
    assert paths(config_of(), k=[1, 2]) == ["", ""]


def test_values_are_spelled_by_java_and_gaps_by_hive() -> None:
    assert paths(config_of(partitions="p"), p=["a b", None, "é~|<>"]) == ["a b", NULL, "é~|<>"]
    assert paths(config_of(partitions="p"), p=[True, False, None]) == ["true", "false", NULL]
    assert paths(config_of(partitions="p"), p=[date(2024, 1, 2)]) == ["2024-01-02"]
    assert paths(config_of(partitions="p"), p=[Decimal("12.50")]) == ["12.50"]


def test_several_fields_make_levels() -> None:
    config = config_of(partitions="p,q", **HIVE)
    assert paths(config, p=["a", "b", None], q=[1, 2, 1]) == ["p=a/q=1", "p=b/q=2", f"p={NULL}/q=1"]


def test_encoding_touches_the_characters_of_hives_list_only() -> None:
    config = config_of(partitions="p", **ENCODED)
    value = 'a b{}[]^~|<>"#%*?:=\\é\x01/'
    assert paths(config, p=[value]) == ["a b%7B}%5B%5D%5E~|<>%22%23%25%2A%3F%3A%3D%5Cé%01%2F"]


def test_a_slash_without_encoding_makes_a_level() -> None:
    assert paths(config_of(partitions="p"), p=["a/b"]) == ["a/b"]


@pytest.mark.parametrize("value", ["", NULL])
@pytest.mark.parametrize("options", [{}, HIVE, ENCODED], ids=["plain", "hive", "encoded"])
def test_what_would_be_in_the_partition_of_nulls_is_refused(
    value: str, options: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        paths(config_of(partitions="p,q", **options), p=["x", None], q=["y", value])
    assert refused.value.code == "ambiguous_partition_value"
    assert refused.value.parameters["column"] == "q"


TEXTS = st.one_of(st.none(), st.text("ab/=-%2F", max_size=4), st.sampled_from(["", NULL, "a/q=b"]))


@given(
    st.sampled_from([{}, HIVE, ENCODED, HIVE | ENCODED, SLASHED]),
    st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=2, unique=True),
)
def test_two_partition_values_never_have_one_path(
    options: dict[str, str], values: list[tuple[str | None, str | None]]
) -> None:
    columns = pa.table(
        {
            name: pa.array(own, pa.string())
            for name, own in zip("pq", zip(*values, strict=True), strict=True)
        }
    )
    fields = "p" if options is SLASHED else "p,q"
    if options is SLASHED and values[0][0] == values[1][0]:
        return
    with suppress(InvalidRequest):
        found = partition_paths(columns, config_of(partitions=fields, **options))
        assert len(found.dictionary) == 2


def test_slashed_dates() -> None:
    config = config_of(partitions="p", **SLASHED)
    assert paths(config, p=["2024-01-02", "20240102", "x-y", "-5"]) == [
        "2024/01/02",
        "20240102",
        "x/y",
        "-5",
    ]
    assert paths(config_of(partitions="p", **SLASHED, **HIVE), p=["2024-01-02", None]) == [
        "p=2024/01/02",
        f"p={NULL}",
    ]


def test_nested_columns() -> None:
    config = config_of(partitions="st.q", **HIVE)
    assert paths(config, st=[{"q": "a"}, None]) == ["st.q=a", f"st.q={NULL}"]


UNUSUAL = "yyyy-DDD-E-a-K-k-Y-MMM-MMMM-EEEE-yy-y-M-d-H-h-m-s-S-SS-SSSS 'q'"


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        (
            timebased("UNIX_TIMESTAMP", "yyyy-MM-dd HH", output_timezone="UTC"),
            [1704164645, None],
            ["2024-01-02 03", "1970-01-01 00"],
        ),
        (
            timebased("EPOCHMILLISECONDS", "yyyy/MM/dd", output_timezone="GMT+8:00"),
            [1704164645123, None],
            ["2024/01/02", "1970/01/01"],
        ),
        (
            timebased(
                "DATE_STRING",
                "yyyyMMdd",
                input_dateformat="yyyy-MM-dd HH:mm:ss",
                input_timezone="America/Chicago",
                output_timezone="UTC",
            ),
            ["2024-01-02 23:30:00", None],
            ["20240103", "19700101"],
        ),
        (
            timebased(
                "DATE_STRING",
                "yyyyMMddHH",
                input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            ),
            ["2024-01-02T23:30:00Z", "2024-01-02T23:30:00.5Z", None],
            ["2024010223", "2024010223", "1970010100"],
        ),
        (
            timebased(
                "SCALAR", "yyyy-MM-dd EEE", timestamp_scalar_time_unit="days", timezone="UTC"
            ),
            [19724, None],
            ["2024-01-02 Tue", "1970-01-02 Fri"],
        ),
        (
            timebased("EPOCHMICROSECONDS", "yyyy-MM-dd hh", timezone="UTC"),
            [1704164645123456, None],
            ["2024-01-02 03", "1970-01-01 12"],
        ),
        (
            timebased("MIXED", UNUSUAL, input_dateformat="yyyy-MM-dd", timezone="UTC"),
            ["2024-01-02"],
            ["2024-002-Tue-AM-0-24-2024-Jan-January-Tuesday-24-2024-1-2-0-12-0-0-0-00-0000 q"],
        ),
    ],
)
def test_timestamp_generators_format_moments(
    options: dict[str, str], values: list[object], expected: list[str]
) -> None:
    config = config_of(partitions="p", **TIMESTAMP, **options)
    # The unit of a scalar has an underscore that stands for no dot.
    assert paths(config, p=values) == expected


def test_dates_and_timestamps_count_as_the_numbers_files_store() -> None:
    options = timebased("SCALAR", "yyyy-MM", timestamp_scalar_time_unit="days", timezone="UTC")
    config = config_of(partitions="p", **TIMESTAMP, **options)
    assert paths(config, p=[date(2024, 1, 2)]) == ["2024-01"]
    options = timebased("EPOCHMICROSECONDS", "yyyy-MM-dd HH", timezone="UTC")
    config = config_of(partitions="p", **TIMESTAMP, **options)
    snapshot = pa.array([datetime(2024, 1, 2, 3, 4, 5)], pa.timestamp("us", "UTC"))
    assert paths(config, p=snapshot) == ["2024-01-02 03"]


def test_custom_generators_mix_kinds_and_take_options_of_the_write() -> None:
    config = config_of(partitions="p:SIMPLE,c:TIMESTAMP", **HIVE)
    rows = pa.table({"p": ["a"], "c": [1704164645123]})
    options = timebased("EPOCHMILLISECONDS", "yyyy/MM", timezone="UTC")
    assert partition_paths(rows, config, options).to_pylist() == ["p=a/c=2024/01"]
    with pytest.raises(InvalidRequest, match=r"timestamp\.type") as refused:
        partition_paths(rows, config)
    assert refused.value.code == "missing_option"


@pytest.mark.parametrize(
    ("options", "values", "code"),
    [
        (timebased("DATE_STRING", "yyyy", input_dateformat="yyyy"), ["x"], "bad_partition_value"),
        (timebased("UNIX_TIMESTAMP", "yyyy"), [10**14], "bad_partition_value"),
        (timebased("UNIX_TIMESTAMP", "yyyy"), [[1]], "unsupported_key_type"),
        (timebased("UNIX_TIMESTAMP", "yyyy"), ["1"], "bad_partition_value"),
        (timebased("UNIX_TIMESTAMP", "yyyy G"), [1], "unsupported_date_format"),
        (timebased("UNIX_TIMESTAMP", "yyyy'"), [1], "bad_date_format"),
        (timebased("SCALAR", "yyyy", timestamp_scalar_time_unit="x"), [1], "bad_timestamp_type"),
        (timebased("UNIX_TIMESTAMP", "yyyy", timezone="Nowhere"), [1], "unknown_time_zone"),
        (timebased("DATE_STRING", "yyyy", input_dateformat="yyyy"), [1], "missing_time_unit"),
    ],
)
def test_what_a_timestamp_generator_cannot_do(
    options: dict[str, str], values: list[object], code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        paths(config_of(partitions="p", **TIMESTAMP, **options), p=values)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "value",
    ["..", ".", "a/../b", "a/./b", "/a", "a/", "a//b", "\\..", "x\n", "\x7f", "a:b", ".hoodie"],
)
def test_paths_that_lead_astray_are_refused(value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        paths(config_of(partitions="p"), p=["fine", value])
    assert refused.value.code == "unsafe_partition_path"


@given(st.text(max_size=12), st.booleans(), st.booleans())
def test_no_value_leaves_the_folder(value: str, hive: bool, encoded: bool) -> None:
    options = {**(HIVE if hive else {}), **(ENCODED if encoded else {})}
    with suppress(InvalidRequest):
        (path,) = paths(config_of(partitions="p", **options), p=pa.array([value]))
        assert not {"", ".", ".."} & set(path.replace("\\", "/").split("/"))
        assert not path.startswith((".hoodie", "/"))


def test_timestamps_as_plain_partitions_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        paths(config_of(partitions="p"), p=pa.array([0], pa.timestamp("us", "UTC")))
    assert refused.value.code == "unsupported_partition_type"


def test_timestamps_of_tables_made_in_sql_are_encoded_texts() -> None:
    moments = pa.array([1_620_259_200_000_000, -1, None], pa.timestamp("us", "UTC"))
    config = config_of(partitions="p", **{TIMESTAMPS_KEY: TIMESTAMPS_AS_TEXT}, **HIVE)
    expected = [f"{LOCAL.wall(ms):%Y-%m-%d %H%%3A%M%%3A%S}" for ms in (1_620_259_200_000, 0)]
    assert paths(config, p=moments) == [f"p={text}" for text in (*expected, NULL)]


def test_no_rows() -> None:
    assert paths(config_of(partitions="p"), p=pa.array([], pa.string())) == []
