"""The outcome of a service: what its files mean for the commit and for the metadata table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.kinds import IndexKind
from lakewarden.engine.index.settings import record_index_kind
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.reading.definitions import (
    IndexDefinition,
    keeps_partition_statistics,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import SchemaHistory, TableSchema, load_schema_history
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome, outputs_of
from lakewarden.engine.write.files.spec import WrittenFile
from lakewarden.engine.write.outcome import (
    FileIds,
    HistoryToKeep,
    as_known,
    commit_metadata,
    history_to_keep,
    live_files,
    table_change,
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Work:
    """What a service has made out of what."""

    operation: Operation
    files: Sequence[WrittenFile]
    # The files that the new ones stand for, by file group; logs that came later stay in force.
    consumed: Mapping[FileGroupId, frozenset[str]]
    # File groups that are no more, by partition; given by clustering only.
    replaced: FileIds | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def outcome_of(state: Snapshot, attempt: Attempt, work: Work) -> Outcome:
    """What an attempt has done, ready to be committed."""
    schema = schema_at(state, attempt)
    history = history_to_keep(state, schema, schema, attempt.instant)
    metadata = commit_metadata(
        work.files,
        work.operation,
        schema.avro_text or "",
        extra={**work.extra, **history.said},
        replaced=work.replaced,
    )
    # Java tells a compaction from a plain commit by this.
    metadata = replace(metadata, compacted=work.replaced is None)
    is_global = record_index_kind(state) is not IndexKind.RECORD_INDEX
    change = table_change(attempt.instant, work.files, is_global=is_global)
    return Outcome(
        metadata=metadata,
        change=change,
        touched=frozenset(work.consumed),
        outputs=outputs_of(metadata),
        at_commit=_AtCommit(
            state.storage,
            work,
            state.history.until(attempt.instant),
            history,
            state.definitions,
        ),
    )


def schema_at(state: Snapshot, attempt: Attempt) -> TableSchema:
    """The columns that a service's files have.

    Where columns can be renamed, files tell by their instant what theirs are called.
    """
    return state.schema(attempt.instant if state.history.versions else None)


@dataclass(frozen=True, slots=True, eq=False)
class _AtCommit:
    """What only the lock makes certain: how columns are called, and which files are live."""

    storage: Storage
    work: Work
    # The columns' history until the service's instant, and the one it leaves behind.
    known: SchemaHistory
    history: HistoryToKeep
    # The indexes that the files were made for.
    indexes: Sequence[IndexDefinition]

    def __call__(self, change: TableChange, snapshot: Snapshot) -> TableChange:
        self._refuse_other_history(change.instant, snapshot)
        change = as_known(change, self.indexes, snapshot.definitions)
        self.history.keep(self.storage, snapshot.timeline, change.instant)
        if not keeps_partition_statistics(snapshot.config):
            return change
        work = self.work
        partitions = sorted({key.partition for key in work.consumed})
        groups = snapshot.file_groups(snapshot.visibility(), tuple(partitions), use_metadata=True)
        live = live_files(groups, work.files, work.replaced or {}, work.consumed)
        return replace(change, live_files=live)

    def _refuse_other_history(self, instant: str, snapshot: Snapshot) -> None:
        """A column that was renamed meanwhile would be looked for under its new name."""
        now = load_schema_history(self.storage, snapshot.timeline).until(instant)
        if now.versions == self.known.versions:
            return
        raise Conflict(
            "plan_conflict",
            what=f"The columns that {instant} wrote now have other names.",
            why="Another engine renamed them after the service started.",
            now="Nothing was changed. Run it again.",
            instant=instant,
        )
