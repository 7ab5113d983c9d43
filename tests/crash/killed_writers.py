"""Mayflies: processes that write to a table until somebody kills them.

This module is run as a process that has imported everything and forks a child for each line it
reads, since starting Python anew takes longer than a mayfly lives.
"""

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Self, TextIO

import pyarrow as pa

from lakewarden import Table
from tests.writing.model import ModelRow, Write
from tests.writing.shapes import carry_out

KEYS = 30
CHECKOUT = Path(__file__).parents[2]
BATCH_ROWS = 5
# All that the services do after a batch.
BESIDE = {
    "lakewarden.services.beside": "true",
    "lakewarden.write.inserts_to_logs": "true",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


def live_for(seconds: float, pid: int) -> None:
    """Let a process live for a while, then kill it and see it gone."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.001)


def write_number(number: int) -> Write:
    """The write that comes at a place in the sequence: always the same."""
    rows = tuple(_row(number, step) for step in range(5))
    return Write("delete" if number % 5 == 4 else "upsert", rows)


def batch_number(number: int) -> pa.Table:
    """The batch of a stream that has a number: keys that no other one has."""
    keys = [f"{number:06d}-{step}" for step in range(BATCH_ROWS)]
    return pa.table({"id": keys, "batch": pa.array([number] * BATCH_ROWS)})


def _row(number: int, step: int) -> ModelRow:
    place = (number * 7 + step * 11) % KEYS
    return {
        "id": f"k{place:02d}",
        "p": "abc"[place % 3],
        "ts": number,
        "v": number / 2,
        "name": f"write {number}",
    }


class Hatchery:
    """The process that mayflies are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.killed_writers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )

    def hatch(
        self, table: Path, first: int, acknowledgements: Path, *, is_stream: bool = False
    ) -> int:
        """Start a process that writes from a number on; it notes the number of each commit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        kind = "stream" if is_stream else "writes"
        print(kind, table, first, acknowledgements, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _live(kind: str, table: str, first: int, acknowledgements: str) -> None:
    """Write until the end comes; a number is noted only after its commit has returned."""
    with open(acknowledgements, "a", buffering=1, encoding="utf-8") as notes:
        if kind == "stream":
            _stream(table, first, notes)
        for number in count(first):
            # Each write opens the table anew, as jobs do.
            carry_out(Table(table), write_number(number))
            notes.write(f"{number}\n")


def _stream(table: str, first: int, notes: TextIO) -> None:
    """Insert batch after batch, which would double what is in the table already."""
    opened = Table(table)
    for number in count(first):
        opened.insert(batch_number(number), BESIDE, stream=("s", number))
        notes.write(f"{number}\n")


def main() -> None:
    # Children that were killed are nobody's business here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        kind, table, first, acknowledgements = line.split()
        child = os.fork()
        if child == 0:
            _live(kind, table, int(first), acknowledgements)
        print(child, flush=True)


if __name__ == "__main__":
    main()
