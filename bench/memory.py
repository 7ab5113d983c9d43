"""Memory while reading a table of over 1 GB in batches."""

import json
import subprocess
import sys
from pathlib import Path

from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Measure, Rounds
from bench.orders import Groups, merge_on_read_orders
from bench.places import CHECKOUT

EIGHT_GROUPS = Groups(8, rows=1_000_000, updates=100_000, inserts=10_000, deletes=10_000)
ROUNDS = 3


def run() -> list[Measure]:
    """Read all batches in a new process, which reports the most memory it ever had."""
    folder = merge_on_read_orders(EIGHT_GROUPS)
    load = ForeignLoad()
    answers = [_read(folder) for _ in range(ROUNDS)]
    assert all(answer["rows"] == EIGHT_GROUPS.live_rows for answer in answers)
    worst = max(answers, key=lambda answer: answer["peak_mb"] - answer["base_mb"])
    stored_gb = sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e9
    case = (
        f"`read_batches` of {EIGHT_GROUPS.count} file groups with logs, {stored_gb:.1f} GB in "
        f"files, {worst['arrow_gb']:.1f} GB in Arrow"
    )
    includes = (
        f"the highest resident memory of {ROUNDS} new processes, {worst['peak_mb']:.0f} MB, less "
        f"the {worst['base_mb']:.0f} MB after importing Lakewarden; every batch is dropped when "
        "the next one comes"
    )
    figure = worst["peak_mb"] - worst["base_mb"]
    rounds = Rounds({OURS: tuple(answer["seconds"] for answer in answers)}, load.cores())
    return [Measure(case, figure, "MB above the base", Bound(400), includes, rounds)]


def _read(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.batch_reader", folder]
    answer = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
    parsed: dict[str, float] = json.loads(answer)
    return parsed
