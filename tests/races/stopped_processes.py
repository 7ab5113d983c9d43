"""Stop, continue and kill: `python -m tests.races.stopped_processes --seconds 600 --seed 1`.

Processes write to one table on a local disk, tend it with one commit retained, and read it. They
are stopped for longer than locks and heartbeats last, and killed and started anew, at random. At
every read keys are there once, balances are what their receipts say, and what was acknowledged is
there. At the end the table is repaired, and validated.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from lakewarden import Table
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from tests.races.accounts import SCHEMA, findings, opening_rows
from tests.races.contenders import read_rows, read_until_killed, write_until_killed
from tests.races.journals import Entry, Journal, Journals

WRITERS = ("a", "b", "c", "d")
READERS = ("reader1", "reader2")
EXPIRY_SECONDS = 2
# Longer than any pause: then nobody is left who could still write for what was rolled back.
SWEEP_SECONDS = 20
PROPERTIES = {
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "1",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "lakewarden.lock.expiry_seconds": str(EXPIRY_SECONDS),
    "lakewarden.sweep.delay_seconds": str(SWEEP_SECONDS),
}


@dataclass(frozen=True, slots=True)
class Run:
    """What is run, and for how long."""

    seconds: float
    seed: int
    type: str = "cow"
    index: str = "RECORD_INDEX"
    writers: tuple[str, ...] = WRITERS
    # Others who keep a journal, write at the same time, and are left alone.
    guests: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    # How many processes are stopped or killed in a second, and how many of these are killed.
    blows_per_second: float = 1.0
    killed_share: float = 0.35

    @property
    def journals(self) -> tuple[str, ...]:
        """The names of those whose rows are held against their journals."""
        return self.writers + self.guests


@dataclass(slots=True)
class Figures:
    """What has happened in a run."""

    pauses: int = 0
    kills: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)

    def take(self, entry: Entry) -> None:
        what = next((name for name in ("answer", "service", "read") if name in entry), None)
        if what is not None:
            self.counts[what, f"{entry[what]} {entry.get('code') or ''}".strip()] += 1
        if entry.get("damage"):
            self.damage.append(f"{entry['who']} at {entry['at']}: {entry['damage']}")

    def count(self, what: str) -> int:
        return sum(count for (kind, _), count in self.counts.items() if kind == what)

    def __str__(self) -> str:
        lines = [f"{self.pauses} pauses, {self.kills} kills, {self.count('read')} reads"]
        lines += [
            f"{what:8} {name:42} {count:6}" for (what, name), count in sorted(self.counts.items())
        ]
        return "\n".join([*lines, *self.damage])


class Company:
    """The processes of a run, and whoever stops, continues and kills them."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._table = folder / "table"
        self._folder = folder / "journals"
        self._chance = Random(run.seed)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.races.contenders"])
        self._processes: dict[str, BaseProcess] = {}
        # When each of those that are stopped goes on.
        self._stopped: dict[str, float] = {}

    def play(self, figures: Figures) -> None:
        """Run until the time is over, or something is wrong."""
        try:
            for name in (*self._run.writers, *READERS):
                self._start(name)
            entries = tail(self._folder)
            end = time.monotonic() + self._run.seconds
            while time.monotonic() < end and not figures.damage:
                time.sleep(self._chance.expovariate(self._run.blows_per_second))
                self._continue()
                self._strike(figures)
                self._take(entries, figures)
        finally:
            self._kill_all()
        self._take(entries, figures)

    def _start(self, name: str) -> None:
        is_writer = name in self._run.writers
        target = write_until_killed if is_writer else read_until_killed
        last = self._chance.getrandbits(32) if is_writer else self._run.journals
        arguments = (str(self._table), self._folder, name, last)
        process = self._context.Process(target=target, args=arguments, daemon=True)
        process.start()
        self._processes[name] = process

    def _strike(self, figures: Figures) -> None:
        """Writers are struck four times as often as readers."""
        name = self._chance.choice(self._run.writers * 2 + READERS)
        if self._chance.random() < self._run.killed_share:
            self._kill(name)
            self._start(name)
            figures.kills += 1
        elif name not in self._stopped:
            self._signal(name, signal.SIGSTOP)
            pause = self._chance.uniform(1.1, 3) * EXPIRY_SECONDS
            self._stopped[name] = time.monotonic() + pause
            figures.pauses += 1

    def _continue(self) -> None:
        now = time.monotonic()
        for name in [name for name, until in self._stopped.items() if until <= now]:
            del self._stopped[name]
            self._signal(name, signal.SIGCONT)

    def _take(self, entries: Iterator[Sequence[Entry]], figures: Figures) -> None:
        for entry in next(entries):
            figures.take(entry)
        for name, process in self._processes.items():
            if not process.is_alive() and process.exitcode != -signal.SIGKILL:
                figures.damage.append(f"{name} ended by itself: {process.exitcode}")

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._processes[name].pid
        assert pid is not None
        os.kill(pid, number)

    def _kill(self, name: str) -> None:
        self._stopped.pop(name, None)
        self._processes[name].kill()
        self._processes[name].join()

    def _kill_all(self) -> None:
        for name in self._processes:
            self._kill(name)


def tail(folder: Path) -> Iterator[Sequence[Entry]]:
    """All that has been added to the journals of a folder, again and again."""
    known: Counter[str] = Counter()
    while True:
        added: list[Entry] = []
        for path in sorted(folder.glob("*.jsonl")):
            entries = Journal(path).entries()
            added += ({**entry, "who": path.stem} for entry in entries[known[path.stem] :])
            known[path.stem] = len(entries)
        yield added


def new_table(run: Run, folder: Path) -> Table:
    """The table of a run, with an empty folder of journals beside it."""
    (folder / "journals").mkdir()
    table = Table.create(
        str(folder / "table"),
        SCHEMA,
        key=["id"],
        type=run.type,
        index=run.index,
        properties=PROPERTIES | run.properties,
    )
    table.upsert(opening_rows())
    return table


def play(run: Run, folder: Path) -> Figures:
    """One run on a new table in a folder, and what became of it."""
    figures, table = Figures(), new_table(run, folder)
    Company(run, folder).play(figures)
    if not figures.damage:
        figures.damage += final_findings(run, table, folder)
    return figures


def final_findings(run: Run, table: Table, folder: Path) -> list[str]:
    """What is wrong after repair, when nobody is left who could change anything."""
    # Until then those who were killed count as alive.
    time.sleep(2 * EXPIRY_SECONDS)
    table.rollback_failed_writes()
    time.sleep(SWEEP_SECONDS)
    table.clean(commits_retained=1)
    paths = [folder / "journals" / f"{name}.jsonl" for name in run.journals]
    operations = Journals(paths).read_on().values()
    found = []
    for how in ("metadata", "listing"):
        rows, now = read_rows(table, how), time.monotonic()
        found += [f"at the end, by {how}: {one}" for one in findings(rows, operations, now, now)]
    checks = table.validate()
    found += [f"validate: {one}" for one in checks if one.finding.verdict is CheckVerdict.FAILED]
    return found


def main() -> int:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="stopped-", dir=arguments.folder))
    run = Run(arguments.seconds, arguments.seed, arguments.type, arguments.index)
    print(f"{run} in {folder}", flush=True)
    figures = play(run, folder)
    print(figures)
    return bool(figures.damage)


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.races.stopped_processes")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", default="cow", help="cow or mor")
    parser.add_argument("--index", default="RECORD_INDEX", help="how writes find keys")
    parser.add_argument("--folder", help="where the table is made; it is kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
