"""Two writers of ours and two of Java race on one table: nobody's acknowledged write is lost.

Where they are disjoint, each adds rows that nobody else touches. Where they overlap, all want the
same file group: ours count one up in a row, and each of Java's has a row there that it writes anew.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.table.schema import COMMIT_TIME
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Instant
from tests.interop.agreement import Agreement
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.interop.races_kit import PATIENT, SEVERAL_WRITERS
from tests.races.racer import THREADS, Report, own_row, reports_of, shared_row, start_racer
from tests.writing.model import ModelRow, Write
from tests.writing.shapes import Shape

OURS, JAVAS = "a", ("b0", "c0")
ATTEMPTS_MAX = 600
INSTANT = re.compile(r"\d{17}")


@dataclass(frozen=True)
class Race:
    """What is raced on, and how many commits each writer makes: ours take less time."""

    kind: str
    mode: str
    ours: int
    javas: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.mode}"


SHORT = (Race("cow", "overlapping", 8, 3),)
WHOLE = tuple(
    Race(kind, mode, 50, 50) for kind in ("cow", "mor") for mode in ("disjoint", "overlapping")
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_whole = metafunc.config.getoption("--all-shapes")
    metafunc.parametrize("race", WHOLE if is_whole else SHORT, ids=str)


@pytest.fixture(scope="module")
def second_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaJudge]:
    """Another JVM, which has written a table of its own.

    One that begins with reading the logs of a metadata table may keep their schema for its own, and
    every write to a metadata table fails then: ArrayIndexOutOfBoundsException.
    """
    path = tmp_path_factory.mktemp("warm") / "table"
    options = SMALL | {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    with JavaJudge(name="second-java") as judge:
        judge.write(path, [{"id": "k"}], columns={"id": "string"}, options=options)
        yield judge


class JavaRacer:
    """Java as a racer of that name."""

    def __init__(self, java: JavaJudge, path: Path, mode: str, name: str) -> None:
        self._writer = JavaWriter(java, path, SMALL | SEVERAL_WRITERS | PATIENT)
        self._mode = mode
        self._name = name

    def write(self, number: int) -> None:
        rows = [own_row(self._name, number)]
        if self._mode == "overlapping":
            rows.append(java_row(self._name, number))
        self._writer.carry_out(Write("upsert", tuple(rows)))

    def race(self, count: int) -> list[Report]:
        reports: list[Report] = []
        for _ in range(ATTEMPTS_MAX):
            number = sum("number" in report for report in reports)
            if number == count:
                return reports
            try:
                self.write(number)
                reports.append({"writer": self._name, "number": number})
            except Refused as error:
                if "Conflict" not in str(error):
                    raise
                reports.append({"writer": self._name, "lost": str(error)})
        raise AssertionError(f"{self._name} has lost too often: {reports[-1]}")


def java_row(name: str, number: int) -> ModelRow:
    """What Java writes anew each time, in the file group that all others write to as well."""
    return {"id": f"of {name}", "p": OURS, "ts": number, "v": float(number), "name": name}


def expected_rows(race: Race) -> list[ModelRow]:
    """What is left if nobody's write is lost, by key."""
    rows = [own_row(name, number) for name in JAVAS for number in range(race.javas)]
    counted = 0.0
    if race.mode == "overlapping":
        counted = float(THREADS * race.ours)
        rows += [java_row(name, race.javas - 1) for name in JAVAS]
    else:
        ours = [f"{OURS}{thread}" for thread in range(THREADS)]
        rows += [own_row(name, number) for name in ours for number in range(race.ours)]
        rows += [java_row(name, 0) for name in JAVAS]
    rows.append({**shared_row(), "v": counted})
    return sorted(rows, key=lambda row: str(row["id"]))


# Two JVMs that start cold, and lose now and then.
@pytest.mark.timeout(3600)
def test_every_acknowledged_write_is_there_once(
    race: Race, java: JavaJudge, second_java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    table = Shape(race.kind, index="SIMPLE").create(str(path))
    table.upsert([shared_row(), *(java_row(name, 0) for name in JAVAS)])
    racers = [
        JavaRacer(judge, path, race.mode, name)
        for judge, name in zip((java, second_java), JAVAS, strict=True)
    ]
    for racer in racers:
        # The race begins when both are warm.
        racer.write(0)
    before = table.timeline().completed(COMPLETED_WRITES)
    ours = start_racer(path, race.mode, OURS, race.ours, SEVERAL_WRITERS)
    with ThreadPoolExecutor(len(racers)) as threads:
        javas = [
            report
            for reports in threads.map(lambda racer: racer.race(race.javas), racers)
            for report in reports
        ]
    reports = reports_of(ours)
    Agreement(java, path).check_snapshot(expected_rows(race), "the race")
    assert java.validate(path) == {}
    assert_commits(table, race, before, reports)
    lost = [report for report in (*reports, *javas) if "lost" in report]
    print(f"{race}: lost", Counter((one["writer"], one["lost"][:20]) for one in lost))
    assert_losers(table, race, lost)


def assert_commits(
    table: Table, race: Race, before: Sequence[Instant], reports: list[Report]
) -> None:
    """All that was acknowledged is there once, nothing else is, and times rise."""
    own = table.read_arrow(columns=["name", COMMIT_TIME], filter=[("name", "in", list(JAVAS))])
    javas = set(own.column(COMMIT_TIME).to_pylist())
    acknowledged = {report["instant"] for report in reports if "instant" in report}
    writes = table.timeline().completed(COMPLETED_WRITES)
    known = {instant.requested for instant in before}
    assert {instant.requested for instant in writes} == known | acknowledged | javas
    assert len(writes) == len(before) + THREADS * race.ours + len(JAVAS) * race.javas
    assert len({instant.requested for instant in writes}) == len(writes)
    assert len({instant.completed for instant in writes}) == len(writes)
    assert all(instant.requested < str(instant.completed) for instant in writes)


def assert_losers(table: Table, race: Race, lost: list[Report]) -> None:
    """Writers of other rows don't conflict with one another; who does is told with whom."""
    completed = {instant.requested for instant in table.timeline().completed()}
    # Besides, a process that is stopped for minutes is taken for dead, and told so.
    conflicts = [one for one in lost if one["writer"] in JAVAS or one["lost"] == "write_conflict"]
    assert bool(conflicts) == (race.mode == "overlapping"), conflicts
    for one in conflicts:
        named = INSTANT.findall(one["lost"]) if one["writer"] in JAVAS else [one["to"]]
        assert completed & set(named), one
