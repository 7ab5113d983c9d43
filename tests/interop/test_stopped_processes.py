"""Java writes beside writers of ours that are stopped beyond their locks, and killed.

Ours tend the table meanwhile, with one commit retained. Java writes and deletes keys of its own, in
file groups that all write to. What is read is held against the journals of all writers.
"""

import re
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from lakewarden.engine.kernel.errors import Conflict, Unsettled
from tests.canonical import canonical_rows, difference
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.interop.races_kit import PATIENT, SEVERAL_WRITERS
from tests.races.accounts import own_keys, row
from tests.races.contenders import noted
from tests.races.journals import Journal, Operation
from tests.races.stopped_processes import Company, Figures, Run, final_findings, new_table

JAVA = "java"
COLUMNS = {
    "id": "string",
    "amount": "bigint",
    "operation": "string",
    "debited": "string",
    "credited": "string",
}
# Java looks at heartbeats as often as ours give them; a JVM on a busy machine stands still now
# and then, and must not be taken for dead by that.
SIGNS_OF_LIFE = {
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "20",
}
OPTIONS = {
    **SMALL,
    **SEVERAL_WRITERS,
    **PATIENT,
    **SIGNS_OF_LIFE,
    "hoodie.datasource.write.precombine.field": "",
}
# Behind these nothing of the write is there; behind any other one it may be.
REFUSALS = ("HoodieWriteConflictException", "HoodieClusteringUpdateException")
EXCEPTION = re.compile(r"\w+Exception")
SHORT, WHOLE = 40, 300


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_whole = metafunc.config.getoption("--all-shapes")
    kinds = ("cow", "mor") if is_whole else ("cow",)
    metafunc.parametrize(
        ("kind", "seconds"), [(one, WHOLE if is_whole else SHORT) for one in kinds]
    )


class JavaContender:
    """Java as a writer of keys of its own, until it is told to stop."""

    def __init__(self, java: JavaJudge, table: Path, journals: Path) -> None:
        self._writer = JavaWriter(java, table, OPTIONS)
        self._journal = Journal(journals / f"{JAVA}.jsonl")
        self._chance = Random(1)

    def write(self, number: int) -> None:
        keys = self._chance.sample(own_keys(JAVA), 2)
        name, is_drop = f"{JAVA}{number}", self._chance.random() < 0.2
        effects = {key: None if is_drop else row(key, name) for key in keys}
        noted(self._journal, Operation(name, "drop" if is_drop else "put", effects), self._done)

    def write_until(self, end: Event) -> None:
        number = 1
        while not end.is_set():
            self.write(number)
            number += 1

    def _done(self, operation: Operation) -> None:
        rows = [one or row(key, operation.name) for key, one in operation.effects.items()]
        try:
            self._writer.write(rows, "delete" if operation.kind == "drop" else "upsert", COLUMNS)
        except Refused as error:
            kinds = EXCEPTION.findall(str(error)) or ["unknown"]
            is_refused = any(kind in REFUSALS for kind in kinds)
            kind = Conflict if is_refused else Unsettled
            raise kind(kinds[-1], what=str(error), why="Java said so.", now="Try again.") from error


# Two JVMs would do no more than one: what Java needs of the lock, it has either way.
@pytest.mark.timeout(3600)
def test_nothing_acknowledged_is_lost_or_doubled(
    kind: str, seconds: int, java: JavaJudge, tmp_path: Path
) -> None:
    properties = {**SIGNS_OF_LIFE, **SEVERAL_WRITERS}
    run = Run(seconds, 1, kind, "SIMPLE", ("a", "b", "c"), (JAVA,), properties)
    table = new_table(run, tmp_path)
    contender = JavaContender(java, tmp_path / "table", tmp_path / "journals")
    # A JVM that starts cold takes a while.
    contender.write(0)
    figures, end = Figures(), Event()
    thread = Thread(target=contender.write_until, args=(end,))
    thread.start()
    try:
        Company(run, tmp_path).play(figures)
    finally:
        end.set()
        thread.join()
    print(figures)
    assert figures.damage == []
    assert final_findings(run, table, tmp_path) == []
    assert not difference(java.read(tmp_path / "table"), canonical_rows(table.read_arrow()))
    assert java.validate(tmp_path / "table") == {}
