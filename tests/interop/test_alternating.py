"""We and Java write one table and tend it in turns, at random, and it has the model's rows."""

from pathlib import Path
from random import Random

import pytest

from lakewarden import Table
from lakewarden.table_service_handle import Plan
from tests.interop.agreement import Agreement
from tests.interop.java_writes import BY_ITSELF, SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Kind, Story
from tests.writing.shapes import Shape, carry_out

TURNS = 40
KINDS: tuple[Kind, ...] = ("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete")
PARTITION_KINDS: tuple[Kind, ...] = (*KINDS, "overwrite_partitions", "delete_partitions")

# Keys of overwritten partitions are the same in all of them, which global indexes don't allow.
TABLES = {
    1: (Shape("mor", index="SIMPLE"), PARTITION_KINDS),
    2: (Shape("cow", is_event_time=False, index="RECORD_INDEX"), KINDS),
    3: (Shape("mor", is_partitioned=False, has_metadata=False, index="BLOOM"), KINDS),
}
# Java cleans, compacts and archives as it does by itself, only more often.
SETTINGS = {name: value for name, value in SMALL.items() if value != "false"} | BY_ITSELF
# Our services find work in what Java leaves.
FEW = {"hoodie.log.compaction.blocks.threshold": "2", "hoodie.clean.commits.retained": "2"}


def tend(table: Table, chance: Random) -> str:
    """One of our services, its plan carried out or cancelled; what it has come to."""
    if chance.random() < 0.3:
        return str(table.clean(options=FEW))
    door = chance.choice((table.compaction, table.log_compaction, table.clustering))
    plan = door.schedule(options=FEW)
    if not isinstance(plan, Plan):
        return str(plan)
    if chance.random() < 0.3:
        return str(plan.cancel("not wanted", force=True))
    return str(plan.run(options=FEW))


# The first one meets a JVM that has compiled nothing yet.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", TABLES)
def test_turns(seed: int, java: JavaJudge, tmp_path: Path) -> None:
    shape, kinds = TABLES[seed]
    table = shape.create(str(tmp_path / "table"))
    writer = JavaWriter(java, tmp_path / "table", SETTINGS)
    agreement = Agreement(java, tmp_path / "table")
    story, chance = Story(seed, shape.model(), kinds=kinds), Random(seed)
    for number, write in enumerate(story.writes(TURNS)):
        turn = chance.choice(("ours", "ours, and a service", "Java's", "Java's in SQL"))
        match turn:
            case "ours":
                carry_out(table, write)
            case "ours, and a service":
                carry_out(table, write)
                turn = f"{turn}: {tend(table, chance)}"
            case "Java's":
                writer.carry_out(write)
            case _:
                writer.carry_out_in_sql(write)
        # Java's reads take the longest; it is asked about what we have done.
        check = agreement.check_snapshot if "ours" in turn else agreement.check_own_snapshot
        check(story.model.contents(), (number, turn, write))
    agreement.check(story.model.contents(), "all turns")
    agreement.check_truth()
