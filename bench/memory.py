"""Memory while reading a table of over 1 GB in batches, and while working on a slice of 400 MB."""

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa

from bench.machine import ForeignLoad
from bench.measure import OURS, Bound, Measure, Rounds
from bench.orders import Groups, merge_on_read_orders
from bench.places import CHECKOUT, built_once
from bench.private_copies import private_copy
from lakewarden.table import Table

EIGHT_GROUPS = Groups(8, rows=1_000_000, updates=100_000, inserts=10_000, deletes=10_000)
ROUNDS = 3


# By the bytes of a row: how many of them make 400 MB, and what they are called.
SLICES = {1 << 20: (400, "1 MB"), 1 << 10: (400_000, "1 KB")}
# By the work: what it may take above the base.
LIMITS_MB = {"compaction": 500, "batches": 300, "lookup": 100}
NAMES = {"compaction": "compaction", "batches": "`read_batches`", "lookup": "lookup of one key"}
UPDATED_SHARE = 10


def run() -> list[Measure]:
    """Work in new processes, which report the most memory they ever had."""
    return [_of_groups(), *(_of_slice(size, work) for size in SLICES for work in LIMITS_MB)]


def _of_slice(row_bytes: int, work: str) -> Measure:
    """One file group, a tenth of its rows updated in a log."""
    rows, name = SLICES[row_bytes]
    folder = built_once(f"fat-{row_bytes}", partial(_build, row_bytes=row_bytes, rows=rows))
    load = ForeignLoad()
    with private_copy(folder) as copy:
        answer = _work(copy, work)
    assert answer["rows"] == (1 if work == "lookup" else rows), answer
    includes = (
        f"the highest resident memory of a new process, {answer['peak_mb']:.0f} MB, less the "
        f"{answer['base_mb']:.0f} MB after importing Lakewarden; the log has 40 MB"
    )
    return Measure(
        f"{NAMES[work]} of a slice of 400 MB, rows of {name}",
        answer["peak_mb"] - answer["base_mb"],
        "MB above the base",
        Bound(LIMITS_MB[work]),
        includes,
        Rounds({OURS: (answer["seconds"],)}, load.cores()),
    )


def _build(folder: Path, row_bytes: int, rows: int) -> None:
    chance = random.Random(1)
    words = " ".join(f"w{chance.randrange(4000):04}" for _ in range(700_000))
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("doc", pa.string())])
    table = Table.create(
        str(folder),
        schema,
        key=["id"],
        ordering=["ts"],
        type="mor",
        properties={"hoodie.parquet.max.file.size": 1 << 30},
    )

    def some(count: int, ts: int) -> pa.Table:
        starts = [chance.randrange(len(words) - row_bytes) for _ in range(count)]
        texts = [words[start : start + row_bytes] for start in starts]
        return pa.table([[f"k{n}" for n in range(count)], [ts] * count, texts], schema=schema)

    table.insert(some(rows, 0))
    table.upsert(some(rows // UPDATED_SHARE, 1))
    (slice_,) = table.file_slices()
    assert len(slice_.log_files) == 1


def _of_groups() -> Measure:
    folder = merge_on_read_orders(EIGHT_GROUPS)
    load = ForeignLoad()
    answers = [_work(folder, "batches") for _ in range(ROUNDS)]
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
    return Measure(case, figure, "MB above the base", Bound(400), includes, rounds)


def _work(folder: Path, work: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.batch_reader", folder, work]
    answer = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
    parsed: dict[str, float] = json.loads(answer)
    return parsed
