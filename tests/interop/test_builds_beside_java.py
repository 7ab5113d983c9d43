"""Java writes and builds indexes while we build one: rows 17 to 23 of the races of builds.

Those whose Java has to stand still in its middle are played on tables that were frozen there, in
`tests/engine/services/indexing/test_java_builds.py`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import SystemClock
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action
from tests.all_kinds import differences
from tests.engine.services.indexing.builds_kit import FIRST_BASE_FILE, LAST_NOTE, Before
from tests.interop.agreement import Agreement
from tests.interop.java_writes import COLUMNS, CREATE_INDEX_LOCK, SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.races_kit import SEVERAL_WRITERS
from tests.writing.model import ModelRow
from tests.writing.shapes import Shape

INDEX = "record_index"
BY_KEY = {"hoodie.metadata.global.record.level.index.enable": "true"}
BESIDE = SMALL | SEVERAL_WRITERS | BY_KEY | {"hoodie.metadata.index.async": "true"}
NEW = ("k3", "x1", "x2")


def row(key: str, ts: int = 1) -> ModelRow:
    return {"id": key, "p": "a", "ts": ts, "v": 1.0, "name": f"{key} at {ts}"}


def written(path: Path, type_: str) -> Table:
    """A table with some rows, and the lock that Java shares."""
    table = Shape(type_, is_partitioned=False).create(str(path))
    table.set_settings({"hoodie.write.lock.provider": "filesystem"})
    for ts in (1, 2):
        table.upsert([row(f"k{number}", ts) for number in range(6)])
    return table


def javas(java: JavaJudge, path: Path, settings: Mapping[str, str]) -> Callable[[], None]:
    """A write by Java of an old key and two new ones."""
    rows = [row(key, 9) for key in NEW]
    return lambda: JavaWriter(java, path, settings).write(rows, "upsert", COLUMNS)


def scheduled(table: Table, name: str = INDEX) -> str:
    columns = ("id",) if name == INDEX else ()
    instant = table.build_index(name, columns, name, op="schedule").instant
    assert instant
    return instant


def run(path: Path, step: str, do: Callable[[], object]) -> None:
    """Carry our plan out, and have Java do something at a step of it."""
    stage = Before(open_storage(Location(str(path))), SystemClock(), step, do)
    Table.on(stage).run_indexing()
    assert stage.has_done_it


def assert_true(java: JavaJudge, path: Path) -> None:
    """The index is ready and true, for us and for Java, and stays so under writes of both."""
    table = Table(str(path))
    assert table.pending_indexing() == ()
    assert table.config.has_metadata(INDEX)
    assert table.config.metadata_partitions_inflight == ()
    assert differences(table) == []
    Agreement(java, path).check_truth()
    table.upsert([row("x1", 10), row("y1", 10)])
    by_key = SMALL | BY_KEY | {"hoodie.index.type": "RECORD_INDEX"}
    rows = [row("x2", 11), row("z1", 11)]
    JavaWriter(java, path, by_key).write(rows, "upsert", COLUMNS, {})
    assert differences(Table(str(path))) == []
    keys = Table(str(path)).read_arrow(["id"])["id"].to_pylist()
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_race_17_a_writer_of_java_that_does_not_know_the_build(
    type_: str, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / f"unknowing_{type_}"
    table = written(path, type_)
    scheduled(table)
    javas(java, path, SMALL)()
    table.run_indexing()
    assert_true(java, path)


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_race_18_a_writer_of_java_that_reports_to_the_build(
    type_: str, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / f"reporting_{type_}"
    table = written(path, type_)
    scheduled(table)
    javas(java, path, BESIDE)()
    table.run_indexing()
    assert_true(java, path)


def test_race_21_an_eager_writer_of_java_in_the_middle_of_the_build(
    java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "eager"
    instant = scheduled(written(path, "mor"))
    run(path, LAST_NOTE, javas(java, path, SMALL))
    assert instant in [
        one.requested for one in Table(str(path)).timeline().completed((Action.INDEXING,))
    ]
    assert_true(java, path)


@pytest.mark.parametrize("step", ["before", FIRST_BASE_FILE, LAST_NOTE])
def test_race_22_an_eager_writer_of_java_that_builds_the_index_itself(
    step: str, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / f"builds_itself_{len(step)}"
    table = written(path, "mor")
    scheduled(table)
    builds = javas(java, path, SMALL | BY_KEY)
    if step == "before":
        builds()
        (done,) = table.run_indexing()
        assert done.was_completed_before
    else:
        run(path, step, builds)
    assert_true(java, path)


@pytest.mark.parametrize("step", ["before", r"/bloom_filters/.*\.hfile$"])
def test_race_23_java_creates_another_index_beside_the_build(
    step: str, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / f"two_{len(step)}"
    table = written(path, "cow")
    table.create_index(INDEX, ["id"])
    scheduled(table, "bloom_filters")
    settings = JavaWriter(java, path)._options() | CREATE_INDEX_LOCK

    def create() -> None:
        java.sql(path, "CREATE INDEX by_name ON t (name)", settings=settings)

    if step == "before":
        create()
        table.run_indexing()
    else:
        run(path, step, create)
    assert "secondary_index_by_name" in Table(str(path)).config.metadata_partitions
    assert "bloom_filters" in Table(str(path)).config.metadata_partitions
    assert_true(java, path)
