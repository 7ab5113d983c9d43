"""Requests for indexes: the forms that Hudi's users type, and what is defined by them."""

from collections.abc import Mapping

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.indexing.request import IndexRequest, WantedIndex, wanted_index
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import TableConfig, load_config
from tests.golden_tables import GoldenTable

COLUMNS = ("id", "name", "v", "n", "ts", "p")


@pytest.fixture
def storage(golden_copy: GoldenTable) -> Storage:
    return open_storage(Location(str(golden_copy("indexing/cow_indexing_all_kinds"))))


@pytest.fixture
def config(storage: Storage) -> TableConfig:
    return load_config(storage)


def asked(
    config: TableConfig,
    name: str,
    columns: tuple[str, ...],
    type: str | None = None,
    options: Mapping[str, str] | None = None,
) -> WantedIndex:
    request = IndexRequest(name=name, columns=columns, index_type=type, options=options or {})
    return wanted_index(request, config, COLUMNS)


@pytest.mark.parametrize(
    ("name", "columns", "type", "options"),
    [
        ("by_name", ("name",), None, {}),
        ("by_name", ("name",), "secondary_index", {}),
        ("by_name", ("name",), "SECONDARY_INDEX", {"expr": "identity"}),
        ("by_day", ("ts",), "column_stats", {"expr": "from_unixtime", "format": "yyyy-MM-dd"}),
        ("by_day", ("ts",), "column_stats", {"func": "FROM_UNIXTIME", "format": "yyyy-MM-dd"}),
        ("by_low", ("name",), "bloom_filters", {"expr": "lower"}),
    ],
)
def test_what_is_defined_is_what_java_defines(
    storage: Storage,
    config: TableConfig,
    name: str,
    columns: tuple[str, ...],
    type: str | None,
    options: dict[str, str],
) -> None:
    wanted = asked(config, name, columns, type, options)
    assert wanted.definition is not None
    defined = load_snapshot(storage).stored_definitions.records[wanted.partition]
    assert wanted.definition.record == defined


def test_options_behind_the_columns_are_those_of_the_function(config: TableConfig) -> None:
    request = IndexRequest(
        name="cut",
        columns=("name",),
        index_type="column_stats",
        options={"expr": "trim"},
        column_options={"trim_string": "x"},
    )
    wanted = wanted_index(request, config, COLUMNS)
    assert wanted.partition == "expr_index_cut"
    assert wanted.definition is not None
    assert wanted.definition.record["indexOptions"] == {"expr": "trim", "trimString": "x"}


@pytest.mark.parametrize(
    ("columns", "type", "partition"),
    [
        (("id",), None, "record_index"),
        (("id",), "record_index", "record_index"),
        (("id",), "bloom_filters", "bloom_filters"),
        ((), "partition_stats", "partition_stats"),
        (("n", "v"), "column_stats", "column_stats"),
    ],
)
def test_kinds_that_a_table_has_once(
    config: TableConfig, columns: tuple[str, ...], type: str | None, partition: str
) -> None:
    assert asked(config, "i", columns, type).partition == partition


@pytest.mark.parametrize(
    ("columns", "type", "options", "code"),
    [
        (("name",), "column_stats", {"expr": "lowr"}, "unknown_index_function"),
        (("name",), "column_stats", {"expr": "lower", "format": "yyyy"}, "unknown_index_option"),
        (("name",), "column_stats", {"expr": "lower", "fpp": "0.1"}, "unknown_index_option"),
        (("name",), "column_stats", {"expr": "lower", "func": "upper"}, "unknown_index_option"),
        (("name",), "column_stats", {"format": "yyyy"}, "unknown_index_option"),
        (("name", "n"), "column_stats", {"expr": "lower"}, "bad_index_columns"),
        (("name",), "secondary_index", {"expr": "lower"}, "no_index_of_expressions"),
        (("name",), "bloom_filters", {}, "not_the_record_key"),
        (("name", "n"), "secondary_index", {}, "bad_index_columns"),
    ],
)
def test_a_form_that_means_nothing_is_refused(
    config: TableConfig, columns: tuple[str, ...], type: str, options: dict[str, str], code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        asked(config, "i", columns, type, options)
    assert refused.value.code == code


def test_a_name_that_is_no_name_of_a_folder_is_refused(config: TableConfig) -> None:
    with pytest.raises(InvalidRequest) as refused:
        asked(config, "a/b", ("name",))
    assert refused.value.code == "bad_index_name"
