"""The files that cleans and rollbacks say they have removed, read without the code under test."""

from lakewarden.engine.formats.instant_metadata import clean, restore
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.table import Table
from tests.procedures.calls import call

Removed = set[tuple[str, str, str]]


def cleaned_files(path: str) -> Removed:
    """Instant, partition and name of what cleans, active and archived, have removed."""
    timeline = Table(path).state().timeline
    contents = [
        (instant.requested, timeline.active.read(instant))
        for instant in timeline.active.completed((Action.CLEAN,))
    ]
    contents += [
        (row.instant.requested, row.metadata or b"")
        for row in timeline.archive.rows((Action.CLEAN,))
    ]
    return {
        (instant, partition, name)
        for instant, content in contents
        for partition, found in clean.decode(content, instant).partition_metadata.items()
        for name in found.success_delete_files
    }


def rolled_back_files(path: str) -> Removed:
    """The same of the rollbacks on the active timeline."""
    return {
        (row["instant"], file["partition"], file["deleted_file"].rpartition("/")[2])
        for row in call("show_rollbacks", path=path)
        for file in call("show_rollback_detail", path=path, instant_time=row["instant"])
    }


def restored_files(path: str) -> Removed:
    """The same of the restores on the active timeline."""
    active = Table(path).timeline()
    return {
        (instant.requested, partition, name.rpartition("/")[2])
        for instant in active.completed((Action.RESTORE,))
        for rollbacks in restore.decode(
            active.read(instant), instant.requested
        ).hoodie_restore_metadata.values()
        for rollback in rollbacks
        for partition, found in rollback.partition_metadata.items()
        for name in found.success_delete_files
    }
