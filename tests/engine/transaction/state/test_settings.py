"""Settings: Hudi's keys and what follows from them."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.transaction.state.settings import (
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    FailedWrites,
    failed_writes_policy,
)

POLICY = "hoodie.clean.failed.writes.policy"
MODE = "hoodie.write.concurrency.mode"


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, FailedWrites.EAGER),
        ({MODE: "optimistic_concurrency_control"}, FailedWrites.LAZY),
        ({MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}, FailedWrites.LAZY),
        ({MODE: "OPTIMISTIC_CONCURRENCY_CONTROL", POLICY: "eager"}, FailedWrites.EAGER),
        ({"hoodie.cleaner.policy.failed.writes": "NEVER"}, FailedWrites.NEVER),
    ],
)
def test_the_policy_is_as_set_or_as_the_number_of_writers_asks_for(
    given: dict[str, str], policy: FailedWrites
) -> None:
    assert failed_writes_policy(Settings.of(session=given)) is policy


@pytest.mark.parametrize(
    ("setting", "text"), [(HEARTBEAT_INTERVAL_MS, "999"), (HEARTBEAT_MISSES, "0")]
)
def test_intervals_that_mean_nothing_are_refused(setting: object, text: str) -> None:
    key = setting.key  # type: ignore[attr-defined]
    with pytest.raises(InvalidRequest):
        Settings.of(arguments={key: text})[setting]  # type: ignore[index]
