"""Settings of Hudi's own: each is honoured, named as without effect, or refused by its value."""

import warnings

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.options import (
    ALL_SETTINGS,
    NoEffect,
    check_values,
    foreign_settings,
    of_hudi,
    understood,
)
from lakewarden.engine.table.creation import is_creation_property
from lakewarden.engine.table.description import DESCRIBING, described

# What the tutorials set, and what jobs paste from each other.
PASTED = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.datasource.write.payload.class": (
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    ),
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.datasource.hive_sync.partition_extractor_class": "MultiPartKeysValueExtractor",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": 2,
    "hoodie.metadata.enable": "true",
    "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
    "hoodie.parquet.small.file.limit": "0",
}


def test_a_pasted_configuration_is_understood() -> None:
    effective = understood(PASTED, ALL_SETTINGS)
    said = described(effective)
    assert (said.key, said.partition, said.ordering) == (["id"], ["city"], ["ts"])
    assert (said.type, said.merge_mode) == ("MERGE_ON_READ", "EVENT_TIME_ORDERING")
    assert said.generator == "SIMPLE"
    assert "hoodie.upsert.shuffle.parallelism" not in effective
    assert effective["hoodie.parquet.small.file.limit"] == "0"


def test_a_setting_without_effect_is_named_once() -> None:
    key = "hoodie.metrics.named.once"
    with pytest.warns(NoEffect, match=f"{key} has no effect here"):
        understood({key: "2"}, ALL_SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        understood({key: "2"}, ALL_SETTINGS)


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("hoodie.upsert.shufle.parallelism", "hoodie.upsert.shuffle.parallelism"),
        ("hoodie.clean.polcy", "hoodie.clean.policy"),
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
    ],
)
def test_a_typing_error_is_refused_with_the_nearest_name(misspelt: str, nearest: str) -> None:
    with pytest.raises(InvalidRequest, match="has no option") as refused:
        understood({misspelt: "1"}, ALL_SETTINGS)
    assert repr(nearest) in refused.value.now


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.base.file.format", "ORC"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.precommit.validators", "org.example.Validator"),
        ("hoodie.datasource.merge.type", "skip_merge"),
        ("hoodie.datasource.write.payload.class", "org.example.Payload"),
    ],
)
def test_what_would_change_rows_or_files_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidRequest):
        described(understood({key: value}, ALL_SETTINGS))


def test_a_session_may_set_what_is_for_others_but_not_what_changes_rows() -> None:
    check_values({"hoodie.some.job": "1", "hoodie.base.file.format": "PARQUET"})
    with pytest.raises(InvalidRequest, match=r"hoodie\.base\.file\.format=HFILE"):
        check_values({"hoodie.base.file.format": "HFILE"})


def test_each_setting_has_one_meaning() -> None:
    own = {name for setting in ALL_SETTINGS for name in setting.names} | DESCRIBING
    assert sorted(own & foreign_settings().keys()) == []
    assert [key for key in foreign_settings() if is_creation_property(key)] == []
    assert [key for key, one in foreign_settings().items() if not one.why.endswith(".")] == []


def test_families_are_known_by_how_they_begin() -> None:
    found = of_hudi("hoodie.metrics.graphite.host")
    assert found is not None
    assert not found.is_limited
