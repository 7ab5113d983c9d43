"""New rows in logs of small file groups: Java finds them by the record index, and writes on."""

from pathlib import Path

import pytest

from lakewarden.engine.write.routing.sizes import INSERTS_TO_LOGS
from tests.canonical import canonical_rows, difference
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Kind, Story, Write, contents_of
from tests.writing.shapes import Shape, carry_out

LOGS = Shape("mor", is_partitioned=False, index="RECORD_INDEX")
ON = {INSERTS_TO_LOGS.key: "true"}
BY_INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
}


@pytest.mark.parametrize("seed", [3, 8])
def test_java_goes_on_with_rows_that_are_in_logs_only(
    seed: int, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = LOGS.create(str(path), ON)
    writer = JavaWriter(java, path, SMALL | BY_INDEX)
    story = Story(seed, LOGS.model(), kinds=("upsert", "delete"))

    def upcoming(kind: Kind = "upsert") -> Write:
        write = story.write(kind)
        story.model.apply(write)
        return write

    def agree(after: str) -> None:
        assert contents_of(table.read_arrow()) == story.model.contents(), after
        assert not difference(java.read(path), canonical_rows(table.read_arrow())), after

    carry_out(table, upcoming("bulk_insert"))
    groups = {one.file_id for one in table.file_slices()}
    for _ in range(3):
        carry_out(table, upcoming())
    assert {one.file_id for one in table.file_slices()} == groups
    carry_out(table, upcoming("delete"))
    carry_out(table, upcoming())
    agree("we wrote")
    writer.carry_out(upcoming())
    writer.carry_out(upcoming("delete"))
    agree("Java wrote")
    carry_out(table, upcoming())
    writer.compact()
    agree("Java compacted")
    carry_out(table, upcoming())
    writer.carry_out(upcoming())
    table.compaction.schedule_and_run()
    agree("we compacted")
    assert {str(one.verdict) for one in table.validate()} <= {"ok", "skipped"}
