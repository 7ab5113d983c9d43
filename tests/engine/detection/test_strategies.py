"""Strategies: all their names, whose value holds, and where detection is refused."""

import warnings

import pytest

from lakewarden import Table
from lakewarden.engine.detection.strategies import (
    CHECKS_COMMITS,
    DETECTION,
    DETECTION_SETTINGS,
    INITIAL_DELAY_MS,
    PERIOD_MS,
    STRATEGY,
    DetectionRules,
    Strategy,
    detection_rules,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Origin, Settings
from lakewarden.engine.services.options import NoEffect, effective_settings
from lakewarden.engine.transaction.state.settings import MARKERS_TYPE
from tests.engine.services.service_table import COW, inserted, new_service_world, updated

MODE = "hoodie.write.concurrency.mode"
SEVERAL = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
ON = {**SEVERAL, DETECTION.key: "true"}
NAMES = {
    "org.apache.hudi.table.marker.SimpleDirectMarkerBasedDetectionStrategy": Strategy.SIMPLE,
    "SimpleDirectMarkerBasedEarlyConflictDetectionStrategy": Strategy.SIMPLE,
    "simple": Strategy.SIMPLE,
    "org.apache.hudi.table.marker.SimpleTransactionDirectMarkerBasedDetectionStrategy": (
        Strategy.TRANSACTIONAL
    ),
    "SimpleTransactionDirectMarkerBasedEarlyConflictDetectionStrategy": Strategy.TRANSACTIONAL,
    "Transactional": Strategy.TRANSACTIONAL,
    "org.apache.hudi.timeline.service.handlers.marker.AsyncTimelineServerBasedDetectionStrategy": (
        Strategy.ASYNC
    ),
    "AsyncTimelineMarkerEarlyConflictDetectionStrategy": Strategy.ASYNC,
    "BloomDirectMarkerBasedEarlyConflictDetectionStrategy": Strategy.BLOOM,
    "BloomAsyncTimelineMarkerEarlyConflictDetectionStrategy": Strategy.BLOOM_ASYNC,
    "bloom_async": Strategy.BLOOM_ASYNC,
}


@pytest.mark.parametrize(("name", "strategy"), NAMES.items(), ids=list(NAMES))
def test_a_strategy_is_known_by_the_names_of_hudi_and_of_the_rfc(
    name: str, strategy: Strategy
) -> None:
    rules = detection_rules(Settings.of(arguments={**ON, STRATEGY.key: name}))
    assert rules is not None
    assert rules.strategy is strategy


def test_another_class_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidRequest, match="simple, transactional, bloom, async, bloom_async"):
        detection_rules(Settings.of(arguments={**ON, STRATEGY.key: "com.example.Mine"}))


RFC = {
    DETECTION: "hoodie.write.lock.early.conflict.detection.enable",
    STRATEGY: "hoodie.write.lock.early.conflict.detection.strategy",
    INITIAL_DELAY_MS: "hoodie.write.lock.early.conflict.async.checker.batch.interval",
    PERIOD_MS: "hoodie.write.lock.early.conflict.async.checker.period",
    CHECKS_COMMITS: "hoodie.write.lock.early.conflict.check.commit",
}


def test_each_setting_has_the_name_of_the_rfc_as_well() -> None:
    given = {
        RFC[DETECTION]: "true",
        RFC[STRATEGY]: "AsyncTimelineMarkerEarlyConflictDetectionStrategy",
        RFC[INITIAL_DELAY_MS]: "500",
        RFC[PERIOD_MS]: "30000",
        RFC[CHECKS_COMMITS]: "false",
    }
    assert detection_rules(Settings.of(arguments=given, table=SEVERAL)) == DetectionRules(
        strategy=Strategy.ASYNC,
        checks_commits=False,
        initial_delay_seconds=0.5,
        period_seconds=30.0,
    )


def test_without_settings_detection_is_off_and_once_on_it_is_simple_and_looks_each_second() -> None:
    assert detection_rules(Settings.of(arguments=SEVERAL)) is None
    assert detection_rules(Settings.of(arguments=ON)) == DetectionRules(strategy=Strategy.SIMPLE)


def test_periods_are_those_of_the_async_strategies_only() -> None:
    rules = detection_rules(Settings.of(arguments={**ON, PERIOD_MS.key: "30000"}))
    assert rules is not None
    assert rules.period_seconds == 1.0


@pytest.mark.parametrize(
    ("markers", "strategy"),
    [
        ("DIRECT", Strategy.SIMPLE),
        ("TIMELINE_SERVER_BASED", Strategy.ASYNC),
        ("BOTH", Strategy.SIMPLE),
    ],
)
def test_without_a_strategy_it_is_the_one_that_goes_with_the_markers(
    markers: str, strategy: Strategy
) -> None:
    settings = Settings.of(arguments={**ON, MARKERS_TYPE.key: markers})
    rules = detection_rules(settings)
    assert rules is not None
    assert rules.strategy is strategy
    (shown,) = effective_settings(settings, STRATEGY.key)
    assert (shown.value, shown.origin) == (strategy.value, Origin.DEFAULT)


def test_a_pasted_configuration_of_hudi_is_taken() -> None:
    pasted = {
        **ON,
        MARKERS_TYPE.key: "TIMELINE_SERVER_BASED",
        "hoodie.markers.timeline_server_based.batch.interval_ms": "50",
        "hoodie.markers.timeline_server_based.batch.num_threads": "20",
        PERIOD_MS.key: "30000",
        INITIAL_DELAY_MS.key: "0",
        "hoodie.write.lock.zookeeper.port": "2181",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }
    world = new_service_world(COW, inserted())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoEffect)
        assert Table.on(world.storage).upsert(updated().table(), options=pasted).instant
    rules = detection_rules(Settings.of(arguments=pasted))
    # As often as is set, and from the first look on.
    assert rules == DetectionRules(
        strategy=Strategy.ASYNC, initial_delay_seconds=30.0, period_seconds=30.0
    )


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_it_is_refused_where_writers_do_not_conflict(mode: str) -> None:
    world = new_service_world(COW, inserted())
    table = Table.on(world.storage)
    before = table.timeline().instants
    with pytest.raises(InvalidRequest) as refusal:
        table.upsert(updated().table(), options={MODE: mode, DETECTION.key: "true"})
    assert refusal.value.code == "detection_without_rivals"
    assert table.timeline().instants == before


def test_effective_settings_say_which_values_hold_by_whom_and_what_is_refused() -> None:
    class_name = "SimpleTransactionDirectMarkerBasedDetectionStrategy"
    settings = Settings.of(
        session={STRATEGY.key: class_name}, table={**SEVERAL, RFC[DETECTION]: "true"}
    )
    shown = {
        one.setting.key: (one.value, one.origin, one.fault)
        for setting in DETECTION_SETTINGS
        for one in effective_settings(settings, setting.key)
    }
    assert shown[STRATEGY.key] == ("transactional", Origin.SESSION, None)
    assert shown[DETECTION.key] == ("true", Origin.TABLE, None)
    assert shown[CHECKS_COMMITS.key] == ("true", Origin.DEFAULT, None)
    alone = Settings.of(arguments={DETECTION.key: "true"})
    (refused,) = effective_settings(alone, DETECTION.key)
    assert "optimistic" in (refused.fault or "")
