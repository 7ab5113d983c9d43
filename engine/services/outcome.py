"""The outcome of a service: what its files mean for the commit and for the metadata table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.formats.payloads.commit import Operation
from lakewarden.engine.index.kinds import IndexKind
from lakewarden.engine.index.settings import record_index_kind
from lakewarden.engine.metadata.changes import TableChange
from lakewarden.engine.metadata.table import PARTITION_STATS
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.commit import Outcome, outputs_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.view.slices import SliceKey
from lakewarden.engine.write.outcome import FileIds, commit_metadata, live_files, table_change
from lakewarden.engine.write.written import WrittenFile


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Work:
    """What a service has made out of what."""

    operation: Operation
    files: Sequence[WrittenFile]
    # The files that the new ones stand for, by file group; logs that came later stay in force.
    consumed: Mapping[SliceKey, frozenset[str]]
    # File groups that are no more, by partition; given by clustering only.
    replaced: FileIds | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def outcome_of(state: Snapshot, attempt: Attempt, work: Work) -> Outcome:
    """What an attempt has done, ready to be committed."""
    metadata = commit_metadata(
        work.files,
        work.operation,
        state.schema().avro_text or "",
        extra=work.extra,
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
        at_commit=_LiveFiles(state.storage, work),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LiveFiles:
    """Tells the metadata table which files are live once the service has completed."""

    storage: Storage
    work: Work

    def __call__(self, change: TableChange, moment: Snapshot) -> TableChange:
        if not moment.config.has_metadata(PARTITION_STATS):
            return change
        work = self.work
        partitions = sorted({key.partition for key in work.consumed})
        groups = moment.file_groups(moment.visibility(), tuple(partitions), use_metadata=True)
        live = live_files(groups, work.files, work.replaced or {}, work.consumed)
        return replace(change, live_files=live)
