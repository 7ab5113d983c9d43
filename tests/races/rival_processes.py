"""Writers in processes of their own that want each other's file groups, on a table on a disk.

    python -m tests.races.rival_processes --rounds 200 --seed 0

In each round all writers are sent off at once, each with a strategy of early conflict detection, or
without. What became of them is held against the promises of detection, and the rows against the
commits. The first broken promise ends the run, and says the seed.
"""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from lakewarden import Table
from lakewarden.engine.detection.rivals import GAVE_WAY
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, Strategy
from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.kernel.errors import LakewardenError
from tests.engine.services.service_table import row
from tests.interop.lines import LineClient, serve
from tests.simulation.rivals import GROUPS, LATE, PLANS
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
KINDS: tuple[tuple[Strategy | None, ...], ...] = (
    *((one,) for one in Strategy),
    (*Strategy, None),
)
MODULE = "tests.races.rival_processes"


class Broken(Exception):
    """A promise was broken."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one writer was asked for, and how it has ended."""

    groups: str
    strategy: Strategy | None
    value: int
    code: str
    instant: str = ""
    shared: tuple[str, ...] = ()

    @property
    def is_committed(self) -> bool:
        return self.code == "committed"


def write(table: str, groups: str, value: int, options: dict[str, str]) -> dict[str, object]:
    """One write by a process: a row for each letter."""
    rows = Write("upsert", tuple(row(f"k{one}", value, one) for one in groups))
    try:
        return {"code": "committed", "instant": Table(table).upsert(rows.table(), options).instant}
    except LakewardenError as error:
        return {"code": error.code, "shared": error.parameters.get("file_groups", ())}


def options_of(strategy: Strategy | None) -> dict[str, str]:
    on = {} if strategy is None else {DETECTION.key: "true", STRATEGY.key: strategy.value}
    return {**SEVERAL, **on}


@dataclass
class Rounds:
    """Some rounds on one table."""

    folder: Path
    chance: Random
    writers: Sequence[LineClient]

    def __post_init__(self) -> None:
        kind = self.chance.choice(("cow", "mor"))
        self.path = str(self.folder / "t")
        Shape(kind, is_event_time=False).create(self.path)
        first = Write("upsert", tuple(row(f"k{one}", 1, one) for one in GROUPS))
        Table(self.path).upsert(first.table())
        self.expected = dict.fromkeys((f"k{one}" for one in GROUPS), 1)

    def play(self, number: int) -> Iterator[Part]:
        """One round; raises what was broken."""
        plans, strategies = self.chance.choice(PLANS), self.chance.choice(KINDS)
        tasks = [
            (groups, self.chance.choice(strategies), number * 10 + place)
            for place, groups in enumerate(plans, start=2)
        ]
        with ThreadPoolExecutor(len(tasks)) as pool:
            parts = list(pool.map(self._written, self.writers, tasks))
        self._assert_promises(parts)
        self._assert_rows(parts)
        yield from parts

    def _written(self, writer: LineClient, task: tuple[str, Strategy | None, int]) -> Part:
        groups, strategy, value = task
        answer = writer.ask(
            "write", table=self.path, groups=groups, value=value, options=options_of(strategy)
        )
        answer["shared"] = tuple(answer.get("shared", ()))
        return Part(groups, strategy, value, **answer)

    def _assert_promises(self, parts: Sequence[Part]) -> None:
        """I1, I2, I3 and I9, as far as the answers show them."""
        for part in parts:
            others = [one for one in parts if one is not part]
            rivals = [one for one in others if set(one.groups) & set(part.groups)]
            if part.code not in ("committed", GAVE_WAY, LATE):
                raise Broken(f"{part} among {parts}")
            if not rivals and not part.is_committed:
                raise Broken(f"{part} had no rival among {parts}")
            if part.code == GAVE_WAY and (part.strategy is None or not part.shared):
                raise Broken(f"{part} gave way to none of {parts}")
        if not any(part.is_committed for part in parts):
            raise Broken(f"No write has committed of {parts}")
        everyone = {part.strategy for part in parts}
        if everyone == {Strategy.TRANSACTIONAL} and LATE in {part.code for part in parts}:
            raise Broken(f"A transactional write failed at its commit: {parts}")

    def _assert_rows(self, parts: Sequence[Part]) -> None:
        table = Table(self.path)
        by_instant = {part.instant: part for part in parts if part.is_committed}
        completed = sorted(table.timeline().completed(), key=lambda one: one.completed or "")
        for instant in completed:
            part = by_instant.get(instant.requested)
            if part is not None:
                self.expected |= {f"k{one}": part.value for one in part.groups}
        found = {str(one["id"]): one["ts"] for one in contents_of(table.read_arrow())}
        if found != self.expected:
            raise Broken(f"{found} instead of {self.expected} after {parts}")
        known = {instant.requested for instant in completed}
        names = (path.name for path in Path(self.path).glob("p=*/*"))
        named = (parsed for name in names if (parsed := parse_file_name(name, 1)))
        left = sorted({one.instant for one in named} - known)
        if left:
            raise Broken(f"Files of {left} are left after {parts}")


def run(rounds: int, seed: int) -> Counter[str]:
    """Rounds on tables of ten each; what became of the writers, by their strategy."""
    tally, chance = Counter[str](), Random(seed)
    most = max(len(plans) for plans in PLANS)
    with ExitStack() as company, TemporaryDirectory() as folder:
        command = [sys.executable, "-m", MODULE, "--serve"]
        writers = [
            company.enter_context(LineClient(command, environment={}, log=Path(folder) / f"{one}"))
            for one in range(most)
        ]
        for number in range(rounds):
            if number % 10 == 0:
                place = Path(folder) / f"of-{number}"
                place.mkdir()
                played = Rounds(place, chance, writers)
            for part in played.play(number + 1):
                tally[f"{part.strategy or 'off'}: {part.code}"] += 1
            tally["rounds"] += 1
    return tally


def main() -> int:
    parser = ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", action="store_true", help="be one of the writers")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(lambda: {"write": partial(write)})
        return 0
    try:
        tally: Mapping[str, int] = run(arguments.rounds, arguments.seed)
    except Broken as broken:
        print(f"seed {arguments.seed}: {broken}")
        return 1
    print(*(f"{name}: {count:,}" for name, count in sorted(tally.items())), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
