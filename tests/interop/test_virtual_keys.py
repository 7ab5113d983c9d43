"""Tables without meta columns: Java and we write on after each other."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden.engine.table.schema import META_COLUMNS
from tests.canonical import Row
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.writing.model import Kind, Story, Write, contents_of
from tests.writing.shapes import Shape, carry_out

VIRTUAL = {"hoodie.populate.meta.fields": "false"}
SHAPES = [
    Shape("cow", index="SIMPLE"),
    Shape("cow", is_partitioned=False, is_event_time=False, index="BUCKET"),
    Shape("mor", index="BUCKET"),
    Shape("mor", is_partitioned=False, index="GLOBAL_SIMPLE"),
    Shape("mor", is_event_time=False, has_metadata=False, index="SIMPLE"),
]


def java_rows(java: JavaJudge, path: Path) -> list[Row]:
    """What Java reads, without the meta columns, which it shows empty."""
    found = java.read(path)
    return [{name: row[name] for name in row if name not in META_COLUMNS} for row in found]


@pytest.mark.parametrize("virtual", SHAPES, ids=str)
def test_java_goes_on_with_a_table_without_meta_columns(
    virtual: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = virtual.create(str(path), VIRTUAL)
    writer = JavaWriter(java, path, SMALL | VIRTUAL | {"hoodie.index.type": virtual.index})
    story = Story(3, virtual.model(), kinds=("upsert", "delete"))

    def upcoming(kind: Kind = "upsert") -> Write:
        write = story.write(kind)
        story.model.apply(write)
        return write

    def agree(after: str) -> None:
        expected = story.model.contents()
        assert contents_of(table.read_arrow()) == expected, after
        assert contents_of(pa.Table.from_pylist(java_rows(java, path))) == expected, after

    for kind in ("bulk_insert", "upsert", "delete", "upsert"):
        carry_out(table, upcoming(kind))
    agree("we wrote")
    writer.carry_out(upcoming())
    writer.carry_out(upcoming("delete"))
    writer.carry_out_in_sql(upcoming())
    agree("Java wrote")
    carry_out(table, upcoming())
    if virtual.type == "mor":
        writer.compact()
        agree("Java compacted")
        carry_out(table, upcoming())
        writer.carry_out(upcoming())
        table.compaction.schedule_and_run()
        agree("we compacted")
    if virtual.index != "BUCKET":
        table.clustering.schedule_and_run()
        writer.carry_out(upcoming())
        writer.cluster()
    carry_out(table, upcoming("delete"))
    carry_out(table, upcoming())
    agree("we clustered, and so did Java")


def test_java_cannot_update_such_a_table_in_sql(java: JavaJudge, tmp_path: Path) -> None:
    path, shape = tmp_path / "t", Shape(is_partitioned=False)
    table = shape.create(str(path), VIRTUAL)
    carry_out(table, Story(3, shape.model(), kinds=("upsert",)).next())
    writer = JavaWriter(java, path, SMALL | VIRTUAL)
    with pytest.raises(Refused, match="NullPointerException"):
        writer.sql("UPDATE t SET name = 'x' WHERE v < 60")
    table.update_where([("v", "<", 60.0)], {"name": "x"})
    rows = [row["name"] for row in java_rows(java, path) if float(str(row["v"])) < 60]
    assert set(rows) <= {"x"}
