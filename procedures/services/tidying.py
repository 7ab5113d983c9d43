"""`run_clean`, `archive_commits`, `run_ttl`: remove what is old."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.services.archive.run import Archived
from lakewarden.engine.services.removal import DAYS_RETAINED, POLICY
from lakewarden.engine.services.retention.clean_plan import Cleaned, Finished
from lakewarden.engine.services.retention.settings import (
    CLEAN_POLICY,
    COMMITS_RETAINED,
    HOURS_RETAINED,
    KEEP_MAX_COMMITS,
    KEEP_MIN_COMMITS,
    TRIGGER_COMMITS,
    TRIGGER_STRATEGY,
    VERSIONS_RETAINED,
)
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import moment_of, one_word


def with_arguments(
    options: Mapping[str, str] | None, arguments: Mapping[Setting[object], object | None]
) -> Mapping[str, str]:
    """The options, and the arguments that are given by the keys of their settings; these win."""
    given = dict(options or {})
    for setting, value in arguments.items():
        if value is not None:
            # The same under another name would be found first or not, as chance has it.
            given = {key: text for key, text in given.items() if key not in setting.names}
            given[setting.key] = str(value)
    return given


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
    return _cleaned_row(one, one.instant, "It was pending, and was resumed.")


def _own_rows(done: Cleaned) -> list[RunClean.Row]:
    """The clean that was planned, or why none was; nothing if others were finished instead."""
    if done.why_nothing is not None:
        return [] if done.finished else [_cleaned_row(done, None, done.why_nothing)]
    partitions = len({*done.partitions, *done.partitions_deleted})
    return [
        _cleaned_row(done, done.instant, f"Files in {partitions} partitions. {done.scope}".strip())
    ]


def _cleaned_row(done: Cleaned | Finished, instant: str | None, message: str) -> RunClean.Row:
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
        yield _archived_row(table.archive(dry_run=self.dry_run, options=options))


def _archived_row(done: Archived) -> ArchiveCommits.Row:
    oldest, held = done.oldest_kept, done.held
    return ArchiveCommits.Row(
        result=_DONE,
        archived_instants_count=len(done.instants),
        deleted_files_count=done.files_deleted,
        oldest_kept_instant=None if oldest is None else oldest.requested,
        held_by_instant=None if held is None else held.instant,
        message=done.why_nothing or f"{len(done.instants)} instants left the active timeline.",
    )


@procedure("run_ttl", is_mutating=True)
class RunTtl(Call):
    """Delete the partitions whose last write is older than so many days; a row for each."""

    table: TableName = None
    ttl_policy: Annotated[str | None, "KEEP_BY_TIME, which counts from the last write."] = None
    retain_days: Annotated[int | None, "For how many days partitions stay; else as set."] = None
    options: Options = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        deleted_partitions: Annotated[str | None, "None where no partition has expired."]
        last_written_at: datetime | None
        bytes: int
        instant: Annotated[str | None, "The write that deleted it."]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        arguments = {POLICY: self.ttl_policy, DAYS_RETAINED: self.retain_days}
        done = open_table(caller, self.table, self.path).expire_partitions(
            dry_run=self.dry_run, options=with_arguments(self.options, arguments)
        )
        for one in done.partitions:
            yield self.Row(
                deleted_partitions=one.partition,
                last_written_at=moment_of(one.last_write_ms),
                bytes=one.bytes,
                instant=None if done.commit is None else done.commit.instant,
                message="It has expired.",
            )
        if not done:
            message = "No partition has expired."
            yield self.Row(
                deleted_partitions=None,
                last_written_at=None,
                bytes=0,
                instant=None,
                message=message,
            )


@procedure("run_timeline_compaction", is_mutating=True)
class RunTimelineCompaction(Call):
    """Merge the files of archived instants, so that readers of the archive open fewer."""

    table: TableName = None
    path: TablePath = None
    options: Options = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        start_compaction_time: Annotated[str, "When it started, as an instant time."]
        time_taken_in_millis: int
        files_before_count: int
        files_after_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.compact_timeline(dry_run=self.dry_run, options=self.options)
        merged = f"{done.files_before} files became {done.files_after}."
        yield self.Row(
            start_compaction_time=done.started,
            time_taken_in_millis=done.milliseconds,
            files_before_count=done.files_before,
            files_after_count=done.files_after,
            message=merged if done else "There are too few files to merge.",
        )
