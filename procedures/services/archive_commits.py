"""`archive_commits`: move old instants from the active timeline to the archive."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.archive.result import Archived
from lakewarden.engine.services.retention.archive_settings import KEEP_MAX_COMMITS, KEEP_MIN_COMMITS
from lakewarden.engine.services.retention.clean_settings import COMMITS_RETAINED
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.services.options import with_arguments

_DONE = 0


@procedure("archive_commits", is_mutating=True)
class ArchiveCommits(Call):
    """Move old instants that no read or write needs from the active timeline to the archive."""

    table: TableName = None
    path: TablePath = None
    min_commits: Annotated[int | None, "Commits that stay; as set, or 20."] = None
    max_commits: Annotated[int | None, "From more than so many on; as set, or 30."] = None
    retain_commits: Annotated[int | None, "Commits that cleans retain; as set, or 10."] = None
    enable_metadata: Annotated[
        bool, "Accepted for older calls; archiving always respects the metadata table."
    ] = True
    options: Options = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[int, "0 for success; otherwise the call raises an error."]
        archived_instants_count: int
        deleted_files_count: int
        oldest_kept_instant: Annotated[str | None, "The oldest write that stays active."]
        held_by_instant: Annotated[str | None, "The instant that keeps it there, if any."]
        message: Annotated[str, "What the call did, or why it did nothing."]

    def run(self, caller: Caller) -> Iterable[Row]:
        options = with_arguments(
            self.options,
            {
                KEEP_MIN_COMMITS: self.min_commits,
                KEEP_MAX_COMMITS: self.max_commits,
                COMMITS_RETAINED: self.retain_commits,
            },
        )
        table = open_table(caller, self.table, self.path)
        yield _row(table.archive(dry_run=self.dry_run, options=options))


def _row(done: Archived) -> ArchiveCommits.Row:
    oldest, held = done.oldest_kept, done.held
    return ArchiveCommits.Row(
        result=_DONE,
        archived_instants_count=len(done.instants),
        deleted_files_count=done.files_deleted,
        oldest_kept_instant=None if oldest is None else oldest.requested,
        held_by_instant=None if held is None else held.instant,
        message=done.why_nothing or f"{len(done.instants)} instants left the active timeline.",
    )
