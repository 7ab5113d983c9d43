"""Java writes on, and runs its services, on tables that we wrote; then we go on after Java."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.metadata.reading.record_index import all_locations
from tests.engine.services.service_table import rows
from tests.interop.agreement import Agreement
from tests.interop.differences import JAVA_COMPACTS_BEFORE_IT_ROLLS_BACK
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.writing.model import Kind, Story, Write
from tests.writing.shapes import Shape, carry_out, pairwise_shapes

Step = Callable[[JavaWriter, Story], None]


def write_of(kind: Kind, carry_out_by: Callable[[JavaWriter, Write], None]) -> Step:
    """The step that writes like this."""

    def step(java: JavaWriter, story: Story) -> None:
        write = story.write(kind)
        story.model.apply(write)
        carry_out_by(java, write)

    return step


def update(java: JavaWriter, story: Story) -> None:
    java.sql("UPDATE t SET name = 'updated' WHERE v < 60")
    for key, row in story.model.rows.items():
        if float(str(row["v"])) < 60:
            story.model.rows[key] = row | {"name": "updated"}


def take_back(java: JavaWriter, story: Story) -> None:
    java.carry_out(story.write("upsert"))
    java.roll_back_last()


STEPS: Mapping[str, Step] = {
    "upsert": write_of("upsert", JavaWriter.carry_out),
    "merge": write_of("upsert", JavaWriter.carry_out_in_sql),
    "update": update,
    "compact": lambda java, _: java.compact(),
    "cluster": lambda java, _: java.cluster(),
    "delete": write_of("delete", JavaWriter.carry_out),
    "insert": write_of("insert", JavaWriter.carry_out_in_sql),
    "clean": lambda java, _: java.clean(),
    "take back": take_back,
    "index": lambda java, _: java.build_record_index(),
    "delete in SQL": write_of("delete", JavaWriter.carry_out_in_sql),
    "archive": lambda java, _: java.archive(),
}
SHARES = 3


def steps_of(shape: Shape) -> list[str]:
    """What Java does on a table of this shape.

    Shapes of the pairwise choice share the steps among themselves, so that each step meets tables
    of either type; the others get all of them.
    """
    shapes, names = pairwise_shapes(), list(STEPS)
    if shape in shapes:
        names = names[shapes.index(shape) % SHARES :: SHARES]
    return [name for name in names if is_possible(name, shape)]


def is_possible(step: str, shape: Shape) -> bool:
    match step:
        case "compact":
            return shape.type == "mor"
        case "cluster":
            # Buckets are not to be clustered: a key would be looked for where it was.
            return shape.index != "BUCKET"
        case "index":
            return shape.has_metadata and not shape.index.startswith("RECORD")
    return True


def test_java_goes_on_and_so_do_we(shape: Shape, java: JavaJudge, tmp_path: Path) -> None:
    table = shape.create(str(tmp_path / "table"))
    writer = JavaWriter(java, tmp_path / "table")
    agreement = Agreement(java, tmp_path / "table")
    story = Story(5, shape.model(), kinds=("upsert", "delete"))
    for kind in ("bulk_insert", "upsert", "upsert", "delete"):
        write = story.write(kind)
        story.model.apply(write)
        carry_out(table, write)
    for name in steps_of(shape):
        STEPS[name](writer, story)
        agreement.check_snapshot(story.model.contents(), name)
    for write in story.writes(2):
        carry_out(table, write)
    agreement.check(story.model.contents(), "we went on")
    agreement.check_truth()


def test_java_still_compacts_what_it_is_about_to_take_back(java: JavaJudge, tmp_path: Path) -> None:
    shape = Shape(is_partitioned=False)
    table = shape.create(str(tmp_path / "table"))
    writer = JavaWriter(java, tmp_path / "table")
    story = Story(5, shape.model(), kinds=("upsert",))
    carry_out(table, story.next())
    writer.carry_out(story.next())
    with pytest.raises(Refused, match=JAVA_COMPACTS_BEFORE_IT_ROLLS_BACK):
        writer.roll_back_last(deltacommits_until_compaction=1)


def test_java_may_find_keys_in_its_own_way(java: JavaJudge, tmp_path: Path) -> None:
    shape = Shape(is_partitioned=False, index="BLOOM")
    table = shape.create(str(tmp_path / "table"))
    story = Story(5, shape.model(), kinds=("upsert",))
    carry_out(table, story.next())
    writer = JavaWriter(java, tmp_path / "table", {"hoodie.index.type": "SIMPLE"})
    write = story.next()
    writer.carry_out(write)
    story.model.apply(write)
    assert len(java.read(tmp_path / "table")) >= len(write.rows)


def test_java_forgets_where_a_key_is_that_was_deleted_in_a_log(
    java: JavaJudge, tmp_path: Path
) -> None:
    shape = Shape("mor", is_partitioned=False)
    table = shape.create(str(tmp_path / "table"))
    writer = JavaWriter(java, tmp_path / "table", SMALL | {"hoodie.index.type": "SIMPLE"})
    writer.carry_out(Write("upsert", rows(["k0", "k1"])))
    writer.build_record_index()
    assert indexed(table) == {"k0", "k1"}
    writer.carry_out(Write("delete", rows(["k1"], ts=2)))
    writer.carry_out(Write("upsert", rows(["k1"], ts=3)))
    assert {one["id"] for one in java.read(tmp_path / "table")} == {"k0", "k1"}
    assert indexed(table) == {"k0"}


def indexed(table: Table) -> set[str]:
    """The keys in the record index."""
    return {one.key for one in all_locations(table.state().metadata.record_index())}
