"""Replay: the same seed gives the same run, step by step, in whatever process."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest

from lakewarden.engine.transaction.state.context import Service
from tests.simulation import broken_storages
from tests.simulation.campaign import campaigns
from tests.simulation.locks import LockKind
from tests.simulation.scenario import Run, Scenario
from tests.simulation.scheduler import Violation

SCENARIO = Scenario(Service.CLUSTERING, False, LockKind.LEASED)
SEEDS = range(4)


def steps(seed: int) -> list[str]:
    run = Run(SCENARIO, seed)
    run.play()
    return [str(step) for step in run.trace]


def test_a_seed_gives_one_run_in_all_processes() -> None:
    code = (
        "from tests.simulation.test_replay import SEEDS, steps;"
        "[print(step) for seed in SEEDS for step in steps(seed)]"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.splitlines() == [step for seed in SEEDS for step in steps(seed)]


def test_seeds_differ() -> None:
    assert len({tuple(steps(seed)) for seed in SEEDS}) == len(SEEDS)


def test_a_run_that_fails_prints_the_line_that_replays_it() -> None:
    scenario = replace(SCENARIO, lie=broken_storages.overwrites_ledger)
    (campaign, *_) = campaigns(scenario.name, partial(Run, scenario), 200)
    with pytest.raises(Violation) as first:
        campaign.run(lambda name, value: None)
    *_, line = str(first.value).splitlines()
    seed = line.partition("LAKEWARDEN_SEED=")[2].split()[0]
    with pytest.raises(Violation) as again:
        Run(scenario, int(seed)).play()
    assert str(again.value) in str(first.value)
    assert line.endswith(f"-k {scenario.name}-")
