"""`rollback_to_savepoint`, `restore_to_instant` and `rollback_to_instant`: the table as it was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.restore.run import Restored
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.savepoints.savepoints import newest_savepoint


def restored_messages(done: Restored, *, dry_run: bool) -> tuple[str, ...]:
    """A sentence for each obstacle, of which only a dry run tells; else one for what was done."""
    if done.obstacles:
        return tuple(f"{one.why} {one.remedy}" for one in done.obstacles)
    if not done.undone:
        return ("The table already has that state; there was nothing to undo.",)
    word = "would be" if dry_run else "are"
    what = f"{len(done.undone)} later instants {word} undone: {', '.join(done.undone)}."
    return (f"{what}{dropped_sentence(done.metadata_dropped)}",)


def dropped_sentence(partitions: Sequence[str]) -> str:
    """What has to be built again, with a space before it; nothing where nothing has."""
    if not partitions:
        return ""
    return (
        f" Dropped, because they include undone instants: {', '.join(partitions)}; build "
        "them again."
    )


@procedure("rollback_to_savepoint", is_mutating=True)
class RollbackToSavepoint(Call):
    """Take the table back to a savepoint; all that came later is undone."""

    table: TableName = None
    instant_time: Annotated[str, "The savepoint; the newest one without it."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        rollback_savepoint_result: Annotated[
            bool, "Only a dry run gives false: with what is in the way."
        ]
        restored_to: Annotated[str, "The newest write after the restore."]
        restore_instant: Annotated[str | None, "None in a dry run, and where nothing was undone."]
        undone_instants_count: int
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        instant = self.instant_time.strip() or newest_savepoint(table)
        done = table.restore(instant, from_savepoint=True, dry_run=self.dry_run)
        for message in restored_messages(done, dry_run=self.dry_run):
            yield self.Row(
                rollback_savepoint_result=not done.obstacles,
                restored_to=done.to,
                restore_instant=done.instant,
                undone_instants_count=len(done.undone),
                deleted_files_count=done.files_deleted,
                message=message,
            )


@procedure("restore_to_instant", is_mutating=True)
class RestoreToInstant(Call):
    """Take the table back to a write whose files are all there; what came later is undone."""

    table: TableName = None
    instant_time: Annotated[str, "A completed write of the active timeline."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        restore_result: Annotated[bool, "Only a dry run gives false: with what is in the way."]
        restored_to: Annotated[str, "The newest write after the restore."]
        restore_instant: Annotated[str | None, "None in a dry run, and where nothing was undone."]
        undone_instants_count: int
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.restore(self.instant_time, dry_run=self.dry_run)
        for message in restored_messages(done, dry_run=self.dry_run):
            yield self.Row(
                restore_result=not done.obstacles,
                restored_to=done.to,
                restore_instant=done.instant,
                undone_instants_count=len(done.undone),
                deleted_files_count=done.files_deleted,
                message=message,
            )


@procedure("rollback_to_instant", is_mutating=True)
class RollbackToInstant(Call):
    """Take a write back: one that has failed, or the newest one that has completed."""

    table: TableName = None
    instant_time: Annotated[str, "The instant of the write."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        rollback_result: Annotated[bool, "True: it is gone; otherwise it is an error."]
        instant_time: str
        action: str
        rollback_instant: Annotated[str | None, "None in a dry run."]
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.rollback(self.instant_time, dry_run=self.dry_run)
        earlier = "Another process has rolled it back, or had started to."
        what = earlier if done.is_taken_over else f"{done.files_deleted} files."
        yield self.Row(
            rollback_result=True,
            instant_time=done.instant,
            action=done.action.value,
            rollback_instant=done.rollback or None,
            deleted_files_count=done.files_deleted,
            message=f"{what}{dropped_sentence(done.metadata_dropped)}",
        )
