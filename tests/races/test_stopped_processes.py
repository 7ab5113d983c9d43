"""A short run of `stopped_processes` for `make simulate`; `make torture` makes long ones."""

from pathlib import Path

import pytest

from tests.races.races_kit import IS_SIMULATION
from tests.races.stopped_processes import Run, play

RUNS = tuple(
    Run(60, seed=1, type=type_, index=index)
    for type_ in ("cow", "mor")
    for index in ("RECORD_INDEX", "BLOOM")
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "run", RUNS if IS_SIMULATION else (), ids=lambda run: f"{run.type}-{run.index}"
)
def test_nothing_acknowledged_is_lost_or_doubled(run: Run, disk_path: Path) -> None:
    assert play(run, disk_path).damage == []
