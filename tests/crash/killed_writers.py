"""Mayflies: processes that write to a table until somebody kills them.

This module is run as a process that has imported everything and forks a child for each line it
reads, since starting Python anew takes longer than a mayfly lives.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from lakewarden import Table
from tests.writing.model import ModelRow, Write
from tests.writing.shapes import carry_out

KEYS = 30
CHECKOUT = Path(__file__).parents[2]


def write_number(number: int) -> Write:
    """The write that comes at a place in the sequence: always the same."""
    rows = tuple(_row(number, step) for step in range(5))
    return Write("delete" if number % 5 == 4 else "upsert", rows)


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

    def hatch(self, table: Path, first: int, acknowledgements: Path) -> int:
        """Start a process that writes from a number on; it notes the number of each commit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(table, first, acknowledgements, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _live(table: str, first: int, acknowledgements: str) -> None:
    """Write until the end comes; a number is noted only after its commit has returned."""
    # Each write opens the table anew, as jobs do.
    with open(acknowledgements, "a", buffering=1, encoding="utf-8") as notes:
        number = first
        while True:
            carry_out(Table(table), write_number(number))
            notes.write(f"{number}\n")
            number += 1


def main() -> None:
    # Children that were killed are nobody's business here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        table, first, acknowledgements = line.split()
        child = os.fork()
        if child == 0:
            _live(table, int(first), acknowledgements)
        print(child, flush=True)


if __name__ == "__main__":
    main()
