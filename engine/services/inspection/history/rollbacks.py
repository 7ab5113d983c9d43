"""Rollbacks in history: which instants each has undone, and which files it has removed."""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import rollback
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata
from lakewarden.engine.services.inspection.history.history import History, Recorded
from lakewarden.engine.timeline.instants.instant import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackFile:
    """A file that a rollback was to remove, and whether it did."""

    instant: str
    undone: str
    partition: str
    file: str
    succeeded: bool


def rollbacks(history: History) -> Iterator[tuple[str, RollbackMetadata]]:
    """The completed rollbacks on the active timeline, newest first."""
    for recorded in history.completed((Action.ROLLBACK,)):
        yield recorded.instant.requested, _decoded(recorded)


def removals(history: History, instant: str) -> Iterator[RolledBackFile]:
    """What a completed rollback has done, file by file."""
    metadata = _decoded(history.named(instant, (Action.ROLLBACK,)))
    undone = ", ".join(metadata.commits_rollback)
    for partition in sorted(metadata.partition_metadata):
        found = metadata.partition_metadata[partition]
        for succeeded, files in (
            (True, found.success_delete_files),
            (False, found.failed_delete_files),
        ):
            for file in files:
                yield RolledBackFile(
                    instant=instant,
                    undone=undone,
                    partition=partition,
                    file=file,
                    succeeded=succeeded,
                )


def _decoded(recorded: Recorded) -> RollbackMetadata:
    return rollback.decode(recorded.content, recorded.path)
