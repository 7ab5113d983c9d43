"""Memory while upserting 2 million rows into 2 million."""

import json
import subprocess
import sys
from pathlib import Path

from bench import own_writer
from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Measure, Rounds
from bench.places import CHECKOUT
from bench.private_copies import new_folder
from bench.write_workload import Sources, WriteWorkload, write_sources

WORKLOAD = WriteWorkload(rows=2_000_000, updates=1_800_000, inserts=200_000)
KINDS = {"cow": "copy on write", "mor": "merge on read"}
LIMIT_MB = 1500
ROUNDS = 2


def run() -> list[Measure]:
    """Upsert in new processes, which report the most memory they ever had."""
    sources = write_sources(WORKLOAD)
    return [_measured(sources, kind) for kind in KINDS]


def _measured(sources: Sources, kind: str) -> Measure:
    load = ForeignLoad()
    answers = [_upsert(sources, kind) for _ in range(ROUNDS)]
    worst = max(answers, key=lambda answer: answer["peak_mb"])
    case = (
        f"upsert of {WORKLOAD.batch_rows:,} rows, {worst['arrow_gb']:.2f} GB in Arrow, into "
        f"{WORKLOAD.rows:,}, {KINDS[kind]}"
    )
    includes = (
        f"the highest resident memory of {ROUNDS} new processes in which the rows are an Arrow "
        f"table; {worst['base_mb']:.0f} MB of it after importing Lakewarden"
    )
    rounds = Rounds({OURS: tuple(answer["seconds"] for answer in answers)}, load.cores())
    return Measure(case, worst["peak_mb"], "MB", Bound(LIMIT_MB), includes, rounds)


def _upsert(sources: Sources, kind: str) -> dict[str, float]:
    with new_folder() as folder:
        table = str(folder)
        own_writer.write(table, str(sources.base), "bulk_insert", kind)
        answer = _answer(table, sources.upsert)
        assert own_writer.checksum(table) == sources.upserted()
    return answer


def _answer(table: str, source: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.batch_writer", table, source]
    answer = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
    parsed: dict[str, float] = json.loads(answer)
    return parsed
