"""Two writers of ours and two of Java race on one table: nobody's acknowledged write is lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.writing.model import ModelRow, Write
from tests.writing.shapes import Shape

SHARED = "shared"
LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
SEVERAL_WRITERS = {
    "hoodie.write.lock.provider": LOCK,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
PATIENT = {
    "hoodie.write.lock.client.num_retries": "600",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}
OUR_COMMITS, JAVAS_COMMITS = 12, 6
ATTEMPTS_MAX = 60

# Writes rows, or raises that another writer was quicker.
Write_ = Callable[[tuple[ModelRow, ...]], None]


class Lost(Exception):
    """Somebody else was quicker, and nothing was written."""


@pytest.fixture
def second_java() -> Iterator[JavaJudge]:
    with JavaJudge(name="second-java") as judge:
        yield judge


# Two JVMs that start cold, and lose now and then.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_acknowledged_write_is_there_once(
    kind: str, java: JavaJudge, second_java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    table = Shape(kind, index="SIMPLE").create(str(path))
    clock = count(1)
    table.upsert([row(SHARED, "a", 0)])
    contestants = {
        "ours-0": (ours(path), OUR_COMMITS),
        "ours-1": (ours(path), OUR_COMMITS),
        "java-0": (javas(java, path), JAVAS_COMMITS),
        "java-1": (javas(second_java, path), JAVAS_COMMITS),
    }
    with ThreadPoolExecutor(len(contestants)) as threads:
        acknowledged = [
            rows
            for written in threads.map(
                lambda name: list(race(name, *contestants[name], clock)), contestants
            )
            for rows in written
        ]
    own = [own for own, _ in acknowledged]
    newest = max((shared for _, shared in acknowledged), key=lambda shared: int(str(shared["ts"])))
    expected = sorted([*own, newest], key=lambda row: str(row["id"]))
    assert len(own) == 2 * (OUR_COMMITS + JAVAS_COMMITS)
    assert rows_of(table) == expected
    read = java.read(path)
    assert sorted((row["id"], row["ts"]) for row in read) == [
        (row["id"], row["ts"]) for row in expected
    ]
    assert not java.validate(path)
    completed = [instant.requested for instant in table.timeline().completed()]
    assert completed == sorted(set(completed))


def race(
    name: str, write: Write_, commits: int, clock: Iterator[int]
) -> Iterator[tuple[ModelRow, ModelRow]]:
    """Commit so often: a row that nobody else has, and a new version of one that everybody has."""
    committed = 0
    for _ in range(ATTEMPTS_MAX):
        if committed == commits:
            return
        ts = next(clock)
        both = row(f"{name}-{committed:02d}", name[0], ts), row(SHARED, "a", ts)
        try:
            write(both)
        except Lost:
            continue
        committed += 1
        yield both
    raise AssertionError(f"{name} has lost {ATTEMPTS_MAX - committed} times")


def ours(path: Path) -> Write_:
    def write(rows: tuple[ModelRow, ...]) -> None:
        try:
            Table(str(path)).upsert(list(rows), options=SEVERAL_WRITERS)
        except Conflict as error:
            raise Lost from error

    return write


def javas(java: JavaJudge, path: Path) -> Write_:
    writer = JavaWriter(java, path, SMALL | SEVERAL_WRITERS | PATIENT)

    def write(rows: tuple[ModelRow, ...]) -> None:
        try:
            writer.carry_out(Write("upsert", rows))
        except Refused as error:
            if "Conflict" not in str(error):
                raise
            raise Lost from error

    return write


def row(key: str, partition: str, ts: int) -> ModelRow:
    return {"id": key, "p": partition, "ts": ts, "v": float(ts), "name": key}


def rows_of(table: Table) -> list[ModelRow]:
    rows: list[ModelRow] = table.read_arrow(columns=["id", "p", "ts", "v", "name"]).to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))
