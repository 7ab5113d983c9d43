"""Whatever we write, Java reads the same rows, and what we say about the files is true."""

from pathlib import Path

import pytest

from lakewarden import Table
from tests.interop.agreement import Agreement
from tests.interop.judges import JavaJudge
from tests.writing.model import Kind, Model, Story, Write
from tests.writing.shapes import Shape, carry_out

KINDS: tuple[Kind, ...] = ("bulk_insert", "upsert", "insert", "upsert", "delete", "upsert")
PARTITION_KINDS: tuple[Kind, ...] = ("overwrite_partitions", "delete_partitions", "upsert")


def test_java_reads_what_we_write(shape: Shape, java: JavaJudge, tmp_path: Path) -> None:
    table = shape.create(str(tmp_path / "table"))
    agreement = Agreement(java, tmp_path / "table")
    agreement.check([], "create")
    story = Story(11, shape.model(), kinds=KINDS)
    for kind in KINDS + PARTITION_KINDS if shape.is_partitioned else KINDS:
        before, write = agreement.now(), story.write(kind)
        story.model.apply(write)
        carry_out(table, write)
        agreement.check(story.model.contents(), kind)
        agreement.check_changes(kind, before)
    agreement.check_base_files("the whole story")
    agreement.check_changes("the whole story")
    agreement.check_truth()


def update_where(table: Table, model: Model, _: Write) -> None:
    table.update_where([("v", "<", 60)], {"name": "updated"})
    for key, row in model.rows.items():
        if float(str(row["v"])) < 60:
            model.rows[key] = row | {"name": "updated"}


def delete_where(table: Table, model: Model, _: Write) -> None:
    table.delete_where([("v", ">", 100)])
    for key, row in list(model.rows.items()):
        if float(str(row["v"])) > 100:
            del model.rows[key]


def merge(table: Table, model: Model, write: Write) -> None:
    table.merge(write.table())
    model.apply(write)


def roll_back(table: Table, _: Model, write: Write) -> None:
    table.rollback(table.upsert(write.table()).instant)


def overwrite(table: Table, model: Model, write: Write) -> None:
    table.overwrite(write.table())
    model.rows.clear()
    model.apply(write)


@pytest.mark.parametrize(
    "shape_",
    [
        Shape("cow", index="RECORD_INDEX"),
        Shape("mor", is_partitioned=False, index="GLOBAL_SIMPLE"),
        Shape("mor", is_event_time=False, has_metadata=False, index="BUCKET"),
    ],
    ids=str,
)
def test_java_reads_what_becomes_of_what_we_find(
    shape_: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    table = shape_.create(str(tmp_path / "table"))
    agreement = Agreement(java, tmp_path / "table")
    story = Story(3, shape_.model(), kinds=("upsert",))
    for write in story.writes(2):
        carry_out(table, write)
    for change in (update_where, merge, delete_where, roll_back, overwrite, update_where):
        change(table, story.model, story.next())
        agreement.check(story.model.contents(), change.__name__)
    agreement.check_truth()
