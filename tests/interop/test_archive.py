"""Java reads the timeline that we archived, archives and merges on after us, and we after Java."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.local import LocalStorage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.timeline import Timeline
from tests.interop.agreement import Agreement
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import SCHEMA, Story
from tests.writing.shapes import Shape, carry_out

FEW = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.keep.max.commits": 4,
    "hoodie.keep.min.commits": 3,
    "hoodie.timeline.compaction.batch.size": 2,
}
COMPACTED_OFTEN = {"hoodie.metadata.compact.max.delta.commits": "2"}


def timeline_of(path: Path) -> Timeline:
    return load_snapshot(LocalStorage(Location(str(path)))).timeline


def shown(path: Path) -> list[tuple[str, str, str | None]]:
    archive = timeline_of(path).archive
    return [(one.requested, one.action.value, one.completed) for one in archive.instants()]


def shown_by_java(java: JavaJudge, path: Path) -> list[tuple[str, str, str | None]]:
    archived = java.timeline(path)["archived"]
    return sorted((one["requested"], one["action"], one["completed"]) for one in archived)


def commits_shown_by_java(java: JavaJudge, path: Path) -> set[str]:
    # Without times it shows those of some days ago only.
    times = "start_ts => '20000101000000000', end_ts => '20991231000000000'"
    rows = java.sql(path, f"CALL show_archived_commits(table => 't', limit => 100, {times})")
    return {str(row["commit_time"]) for row in rows}


@pytest.mark.parametrize("type_", ["cow"])
def test_java_reads_our_archive_and_both_archive_on(
    type_: str, java: JavaJudge, tmp_path: Path
) -> None:
    path, shape = tmp_path / "table", Shape(type_)
    table = created(path, type_)
    story = Story(7, shape.model(), kinds=("upsert", "upsert", "delete"), keys=20)
    agreement, writer = Agreement(java, path), JavaWriter(java, path, SMALL | COMPACTED_OFTEN)
    write(table, story, 8)
    assert table.archive(options=FEW)
    assert shown_by_java(java, path) == shown(path) != []
    written = {time for time, action, _ in shown(path) if action in ("commit", "deltacommit")}
    assert written <= commits_shown_by_java(java, path)
    agreement.check(story.model.contents(), "we archived")
    write(table, story, 4)
    assert table.archive(options=FEW)
    agreement.check_changes("we archived twice")
    ours = shown(path)
    for _ in range(2):
        one = story.write("upsert")
        story.model.apply(one)
        writer.carry_out(one)
    before = [one.key for one in timeline_of(path).instants()]
    writer.sql(
        "CALL archive_commits(table => 't', min_commits => 2, max_commits => 3,"
        " retain_commits => 1)",
        # Java keeps as many deltacommits as the trigger of its next compaction counts.
        compact__inline__max__delta__commits="1",
        timeline__compaction__batch__size="2",
    )
    assert len(shown(path)) > len(ours)
    assert [one.key for one in timeline_of(path).instants()] == before
    assert shown_by_java(java, path) == shown(path)
    agreement.check_snapshot(story.model.contents(), "Java archived")
    write(table, story, 4)
    assert table.archive(options=FEW)
    table.compact_timeline(options={"hoodie.timeline.compaction.batch.size": 2})
    assert shown_by_java(java, path) == shown(path)
    agreement.check(story.model.contents(), "we went on")
    agreement.check_truth()


def created(path: Path, type_: str) -> Table:
    """A table whose metadata table is compacted often, as archiving waits for that."""
    return Table.create(
        str(path),
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=type_,
        index="SIMPLE",
        properties=COMPACTED_OFTEN,
    )


def write(table: Table, story: Story, count: int) -> None:
    """Writes that do something each."""
    for _ in range(count):
        one = story.next()
        while not one.rows:
            one = story.next()
        story.model.apply(one)
        carry_out(table, one)
