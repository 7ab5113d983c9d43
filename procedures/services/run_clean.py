"""`run_clean`: remove files that are too old for any reader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.retention.clean_result import Cleaned, Finished
from lakewarden.engine.services.retention.clean_settings import (
    CLEAN_POLICY,
    COMMITS_RETAINED,
    HOURS_RETAINED,
    TRIGGER_COMMITS,
    TRIGGER_STRATEGY,
    VERSIONS_RETAINED,
)
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
from lakewarden.procedures.declaring.words import one_word
from lakewarden.procedures.services.options import with_arguments

# Of the metadata of cleans, since Hudi 0.6.
_METADATA_VERSION = 2


@procedure("run_clean", is_mutating=True)
class RunClean(Call):
    """Remove files that are too old for any reader, and what failed work has left."""

    table: TableName = None
    schedule_in_line: Annotated[bool, "Plan a new clean; otherwise finish pending ones."] = True
    clean_policy: Annotated[
        str | None, "KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS"
    ] = None
    retain_commits: Annotated[int | None, "Commits that stay readable as they were."] = None
    hours_retained: Annotated[int | None, "For how many hours they do."] = None
    file_versions_retained: Annotated[int | None, "Slices of a file group that stay."] = None
    trigger_strategy: Annotated[str | None, "NUM_COMMITS: wait for so many since the last."] = None
    trigger_max_commits: Annotated[int | None, "For how many a clean waits, if for any."] = None
    options: Options = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        start_clean_time: Annotated[str | None, "The instant of the clean."]
        time_taken_in_millis: int
        total_files_deleted: int
        earliest_commit_to_retain: str | None
        bootstrap_part_metadata: Annotated[str | None, "Lakewarden has no bootstrapped files."]
        version: int
        deleted_bytes: int
        message: Annotated[str, "What the call did, or why it did nothing and what holds it back."]

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).clean(
            only_pending=not self.schedule_in_line,
            honour_trigger=(self.trigger_strategy or self.trigger_max_commits) is not None,
            dry_run=self.dry_run,
            options=self._options(),
        )
        return [*map(_finished_row, done.finished), *_own_rows(done)]

    def _trigger_strategy(self) -> str | None:
        given = self.trigger_strategy
        return given and one_word("trigger_strategy", given, (TRIGGER_STRATEGY.default,))

    def _options(self) -> Mapping[str, str]:
        return with_arguments(
            self.options,
            {
                CLEAN_POLICY: self.clean_policy,
                COMMITS_RETAINED: self.retain_commits,
                HOURS_RETAINED: self.hours_retained,
                VERSIONS_RETAINED: self.file_versions_retained,
                TRIGGER_STRATEGY: self._trigger_strategy(),
                TRIGGER_COMMITS: self.trigger_max_commits,
            },
        )


def _finished_row(one: Finished) -> RunClean.Row:
    return _row(one, one.instant, "It was pending, and was resumed.")


def _own_rows(done: Cleaned) -> list[RunClean.Row]:
    """The clean that was planned, or why none was; nothing if others were finished instead."""
    if done.why_nothing is not None:
        return [] if done.finished else [_row(done, None, done.why_nothing)]
    partitions = len({*done.partitions, *done.partitions_deleted})
    return [_row(done, done.instant, f"Files in {partitions} partitions. {done.scope}".strip())]


def _row(done: Cleaned | Finished, instant: str | None, message: str) -> RunClean.Row:
    return RunClean.Row(
        start_clean_time=instant,
        time_taken_in_millis=done.milliseconds,
        total_files_deleted=done.files_deleted,
        earliest_commit_to_retain=done.earliest_retained,
        bootstrap_part_metadata=None,
        version=_METADATA_VERSION,
        deleted_bytes=done.bytes_deleted,
        message=message,
    )
