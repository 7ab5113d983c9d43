"""The metadata table after services of its own: Java trusts it, writes on, and runs its own."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.services.metadata_table.service import (
    MetadataMaintenance,
    MetadataService,
    maintain_metadata_table,
)
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.metadata_compaction import compact_metadata
from tests.engine.transaction.hooked import PausingExecutor
from tests.interop.agreement import Agreement
from tests.interop.contexts import local_context
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Story
from tests.writing.shapes import Shape, carry_out

CLEAN, COMPACTION, LOG_COMPACTION, ARCHIVE = MetadataService
KEEPS_LITTLE = {
    "hoodie.metadata.derive.from.datatable.clean.policy": "false",
    "hoodie.metadata.log.compaction.blocks.threshold": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
# Java with services of the metadata table after every few writes.
BUSY = {
    **SMALL,
    "hoodie.metadata.compact.max.delta.commits": "6",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
    "hoodie.metadata.log.compaction.enable": "true",
}
SHAPE = Shape("mor", index="RECORD_INDEX")


class Subject:
    """A table, its model, and both engines."""

    def __init__(self, java: JavaJudge, path: Path) -> None:
        self.path = path
        self.table = SHAPE.create(str(path))
        self.story = Story(11, SHAPE.model(), kinds=("upsert", "delete"))
        self.writer = JavaWriter(java, path)
        self.busy = JavaWriter(java, path, BUSY)
        self.agreement = Agreement(java, path)

    def write(self, count: int) -> None:
        for write in self.story.writes(count):
            carry_out(self.table, write)

    def write_by(self, writer: JavaWriter, count: int) -> None:
        for write in self.story.writes(count):
            writer.carry_out(write)

    def maintain(self, *services: MetadataService) -> MetadataMaintenance:
        context = local_context(self.path, KEEPS_LITTLE)
        answer = maintain_metadata_table(context, services=services)
        assert all(answer.steps), answer
        return answer

    def completed(self, action: Action) -> int:
        """How many instants of an action the metadata table's timeline has."""
        storage = open_storage(Location(str(self.path)))
        active = load_metadata_table(storage, load_config(storage)).timeline.active
        return sum(one.started_as is action and one.completed is not None for one in active.files)

    def check(self, after: str) -> None:
        self.agreement.check_snapshot(self.story.model.contents(), after)


@pytest.fixture
def subject(java: JavaJudge, tmp_path: Path) -> Subject:
    made = Subject(java, tmp_path / "table")
    made.write(4)
    return made


def test_java_goes_on_after_each_of_our_services(subject: Subject) -> None:
    # Some writes of the story have no rows, and make no instant.
    subject.write(2)
    subject.maintain(LOG_COMPACTION)
    subject.check("our log compaction")
    subject.write_by(subject.writer, 1)
    subject.maintain(COMPACTION)
    subject.check("our compaction")
    subject.write_by(subject.writer, 2)
    subject.maintain(COMPACTION)
    subject.write(5)
    subject.maintain(CLEAN)
    subject.check("our clean")
    subject.write_by(subject.writer, 1)
    subject.check("a write by Java")
    subject.agreement.check_truth()


def test_we_go_on_after_the_services_of_java(subject: Subject) -> None:
    subject.write_by(subject.busy, 7)
    subject.check("writes by Java with services")
    assert subject.completed(Action.COMPACTION)
    assert subject.completed(Action.LOG_COMPACTION)
    subject.write(1)
    subject.maintain(COMPACTION)
    subject.check("our compaction")
    subject.agreement.check_truth()


def test_java_may_take_up_the_compaction_that_we_are_at(subject: Subject) -> None:
    executor = PausingExecutor({2: lambda: subject.write_by(subject.writer, 2)})
    context = local_context(subject.path, {})
    ports = replace(context.ports, executor=executor)
    # Java folds the same slices, and its files are the ones that count.
    with pytest.raises(Conflict) as lost:
        compact_metadata(replace(context, ports=ports), deltacommits_min=1)
    assert lost.value.code == "metadata_completed_elsewhere"
    assert subject.completed(Action.COMPACTION) == 1
    subject.check("a compaction by both")
    subject.write(1)
    subject.maintain(COMPACTION)
    subject.write_by(subject.writer, 1)
    subject.check("writes by both")
    subject.agreement.check_truth()
