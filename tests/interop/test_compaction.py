"""Compaction by us and by Java on the same tables: plans of either are carried out by the other."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.open_lock import open_lock
from lakewarden.engine.plans.context import Context
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execute import execute
from lakewarden.engine.services.pending import RunLimits, run_pending
from lakewarden.engine.services.schedule import schedule
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instant import Action
from tests.interop.agreement import Agreement
from tests.interop.java_writes import JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Kind, Story, Write
from tests.writing.shapes import Shape, carry_out

SHAPES = (
    Shape("mor"),
    Shape("mor", is_partitioned=False, is_event_time=False),
    Shape("mor", index="RECORD_INDEX"),
    # New rows go to logs without a base file.
    Shape("mor", has_metadata=False, index="BUCKET"),
)
KINDS: tuple[Kind, ...] = ("upsert", "upsert", "delete", "upsert")


# Later than all times of a story.
LATE = 1_000_000


class Stage:
    """A table that we and Java write to in turns, and what it has to hold."""

    def __init__(self, shape: Shape, java: JavaJudge, path: Path) -> None:
        self.table = shape.create(str(path))
        self.java = JavaWriter(java, path)
        self.agreement = Agreement(java, path)
        self.story = Story(11, shape.model(), kinds=("upsert", "delete"))
        storage, ports, settings = open_storage(Location(str(path))), Ports(), Settings()
        self.context = Context(storage, open_lock(storage, settings, ports), ports, settings)

    def write(self, *kinds: Kind) -> None:
        for kind in kinds:
            write = self.story.write(kind)
            self.story.model.apply(write)
            carry_out(self.table, write)

    def java_writes(self) -> None:
        """New versions of rows that are there, which go to logs."""
        newer = [row | {"ts": LATE, "name": "late"} for row in self.story.model.rows.values()]
        write = Write("upsert", tuple(newer[::2]))
        self.story.model.apply(write)
        self.java.carry_out(write)

    def agree(self, after: str) -> None:
        self.agreement.check(self.story.model.contents(), after)

    def logs(self) -> int:
        return sum(len(slice_.log_files) for slice_ in self.table.file_slices())


@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_java_reads_what_we_compacted_and_compacts_on(
    one: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    stage = Stage(one, java, tmp_path / "table")
    stage.write(*KINDS)
    plan = schedule(stage.context, COMPACTION, Wish())
    assert plan
    execute(stage.context, COMPACTION, plan.instant)
    assert stage.logs() == 0
    stage.agree("our compaction")
    stage.agreement.check_truth()
    stage.java_writes()
    stage.java.compact()
    assert stage.logs() == 0
    stage.write("upsert")
    stage.agreement.check_snapshot(stage.story.model.contents(), "we went on after Java")


def test_we_carry_out_a_plan_of_java(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(SHAPES[0], java, tmp_path / "table")
    stage.write(*KINDS)
    stage.java.sql(
        "CALL run_compaction(op => 'schedule', table => 't')",
        compact__inline__max__delta__commits="1",
    )
    # Its logs are no part of the plan.
    stage.java_writes()
    assert run_pending(stage.context, COMPACTION, RunLimits()).executions
    assert stage.logs() > 0
    stage.agree("Java's plan by us")
    stage.agreement.check_truth()


def test_java_carries_out_a_plan_of_ours(java: JavaJudge, tmp_path: Path) -> None:
    stage = Stage(SHAPES[2], java, tmp_path / "table")
    stage.write(*KINDS)
    plan = schedule(stage.context, COMPACTION, Wish(max_file_groups=2, cancellable=True))
    assert plan
    stage.write("upsert")
    stage.java.sql(f"CALL run_compaction(op => 'run', table => 't', timestamp => {plan.instant})")
    assert not Table(str(tmp_path / "table")).timeline().pending((Action.COMPACTION,))
    stage.agree("our plan by Java")
    stage.agreement.check_truth()
