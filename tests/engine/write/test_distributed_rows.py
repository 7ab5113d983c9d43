"""Files that are made far away: what a second try, or one taken for dead, leaves behind."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.abort_attempt import abort_attempt
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.commit import Outcome, commit, outputs_of
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import read_markers
from lakewarden.engine.write.distributed_rows import DistributedWrite, RowPreparation
from lakewarden.engine.write.files.spec import GroupTask, WrittenFile
from lakewarden.engine.write.outcome import commit_metadata, table_change
from lakewarden.engine.write.routing.sizes import SizeLimits
from lakewarden.engine.write.settings import write_spec
from tests.writing.model import SCHEMA, contents_of
from tests.writing.shapes import Shape

ROWS = pa.table([["a", "b"], ["x", "x"], [1, 1], [0.5, 0.5], ["n", "n"]], schema=SCHEMA)


class FarWrite:
    """A write whose only file is made as a worker makes it."""

    def __init__(self, table: Table) -> None:
        properties = table.properties
        self.context: Context = table._context({}, properties)
        self.state = load_snapshot(self.context.storage)
        attempt = publish(self.context, Action.COMMIT, claims=True).attempt
        assert attempt is not None
        self.attempt: Attempt = attempt
        to_inflight(self.context, attempt, b"")
        schema = RowPreparation(
            properties=dict(properties),
            schema=self.state.schema(),
            deletes=False,
            partition_matters=True,
        )
        spec = write_spec(
            self.state, self.state.schema(), Settings(), instant=attempt.instant, attempt=1
        )
        self.job = DistributedWrite(
            spec=spec, claim=attempt.claim, limits=SizeLimits(record_bytes=100)
        )
        everything = np.ones(2, np.bool_)
        key = FileGroupId("", "group-0")
        self.task = GroupTask(key, None, 0, schema.fit(ROWS), everything, ~everything)

    def made(self, task_attempt: int) -> WrittenFile:
        return self.job.write_file(self.context.storage, self.task, task_attempt)

    def committed(self, file: WrittenFile) -> int:
        """Commit a file; the number of others that were removed."""
        metadata = commit_metadata([file], Operation.INSERT, "", extra={})
        outcome = Outcome(
            metadata=metadata,
            change=table_change(self.attempt.instant, [file], is_global=True),
            touched=frozenset([file.key]),
            seen=ObservedInstants.of(self.state.timeline.active),
            outputs=outputs_of(metadata),
        )
        return commit(self.context, self.attempt, outcome).leftovers_deleted


def files_of(storage: Storage) -> list[str]:
    names = (PurePosixPath(entry.path) for entry in storage.walk(""))
    return sorted(str(path) for path in names if path.suffix == ".parquet")


class Interrupted:
    """A storage on which something else happens just before a file is made."""

    def __init__(self, storage: Storage, interrupt: Callable[[], None]) -> None:
        self._storage = storage
        self._interrupt = interrupt

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def create(self, path: str) -> object:
        self._interrupt()
        return self._storage.create(path)


@pytest.fixture
def write(tmp_path: Path) -> Iterator[FarWrite]:
    shape = Shape(is_partitioned=False, has_metadata=False)
    write = FarWrite(shape.create(str(tmp_path / "table")))
    yield write
    write.attempt.stop()


def test_the_first_of_two_tries_at_a_task_is_gone_after_the_commit(write: FarWrite) -> None:
    first, second = write.made(7), write.made(8)
    assert first.stat.path != second.stat.path
    assert write.committed(second) == 1
    assert files_of(write.context.storage) == [second.stat.path]
    assert contents_of(Table.on(write.context.storage).read_arrow()) == ROWS.to_pylist()


def test_nothing_is_made_after_the_commit(write: FarWrite) -> None:
    kept = write.made(7)
    write.committed(kept)
    with pytest.raises(Conflict):
        write.made(8)
    assert files_of(write.context.storage) == [kept.stat.path]
    assert read_markers(write.context.storage, write.attempt.instant) is None


def test_a_file_that_is_finished_after_the_write_was_given_up_is_removed(write: FarWrite) -> None:
    storage = write.context.storage
    late = Interrupted(
        storage, lambda: abort_attempt(write.context, write.attempt, "It was tested.")
    )
    with pytest.raises(Conflict):
        write.job.write_file(cast(Storage, late), write.task, 9)
    assert files_of(storage) == []


def test_keys_travel_only_to_where_an_index_asks_for_them(write: FarWrite) -> None:
    assert len(write.made(7).arrived) == 0
    tracking = replace(write.job, spec=replace(write.job.spec, tracks_keys=True))
    written = tracking.write_file(write.context.storage, write.task, 8)
    assert written.arrived.to_pylist() == ["a", "b"]
