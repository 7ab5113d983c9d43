"""Drafting a clean: its scope, and the table as it is now, brought before the pure planner."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.conflicts.touched_groups import touched_by
from lakewarden.engine.file_groups.file_names import DataFile, LogFile
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import Visibility, file_groups
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.formats.instant_metadata.clean import (
    CleanFile,
    CleanPlan,
    CleanPolicy,
    RetainedInstant,
)
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.services.retention.clean_plan import (
    CleanSelection,
    Cut,
    Kept,
    OldFile,
    PartitionView,
    held_files,
    select,
)
from lakewarden.engine.services.retention.horizon import Horizon, find_horizon, writes_of
from lakewarden.engine.services.retention.settings import (
    COMMITS_TO_CLEAN,
    IS_INCREMENTAL,
    TRIGGER_COMMITS,
    CleanRetention,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.state.context import Context

# In the extra metadata of a clean, as Java has it: the savepoints there were, with commas.
SAVEPOINTS_KEY = "savepointed_timestamps"
# In the extra metadata of a clean: its caller named the partitions.
PARTIAL_KEY = "lakewarden.clean.partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastClean:
    """What the last completed clean says of itself."""

    instant: str
    # Empty where it counted versions.
    earliest: str = ""
    last_write: str = ""
    savepoints: frozenset[str] = frozenset()
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class CleanScope:
    """The partitions to look at, None for all of them, and why these."""

    partitions: tuple[str, ...] | None
    why: str


def find_last(active: ActiveTimeline) -> LastClean | None:
    """The last completed clean; None without one, or when its content says nothing."""
    completed = active.completed((Action.CLEAN,))
    if not completed:
        return None
    try:
        metadata = clean.decode(active.read(completed[-1]), active.path(completed[-1]))
    except CorruptTable:
        return None
    extra = metadata.extra_metadata or {}
    return LastClean(
        instant=completed[-1].requested,
        earliest=metadata.earliest_commit_to_retain.strip(),
        last_write=metadata.last_completed_commit_timestamp,
        savepoints=frozenset(filter(None, extra.get(SAVEPOINTS_KEY, "").split(","))),
        is_partial=extra.get(PARTIAL_KEY) == "true",
    )


def find_scope(
    active: ActiveTimeline, last: LastClean | None, horizon: str | None, *, is_incremental: bool
) -> CleanScope:
    """Where to look for old files; `horizon` is None for a policy that counts versions."""
    reason = _why_all(active, last, horizon, is_incremental=is_incremental)
    if reason is not None or last is None or horizon is None:
        return CleanScope(None, f"All partitions were checked: {reason}.")
    touched = tuple(sorted(set(_touched(active, last, horizon))))
    since = f"written to since {last.earliest}, where the clean {last.instant} stopped"
    return CleanScope(touched, f"{len(touched)} partitions were checked: those {since}.")


def _why_all(
    active: ActiveTimeline, last: LastClean | None, horizon: str | None, *, is_incremental: bool
) -> str | None:
    """Why all partitions have to be looked at, in words."""
    if horizon is None:
        return "the policy counts versions"
    if not is_incremental:
        return "incremental cleaning is off"
    if last is None:
        return "no earlier clean says where it stopped"
    if not last.earliest:
        return f"the clean {last.instant} does not say where it stopped"
    first = active.first_write()
    if first is None or last.earliest < first.requested:
        return f"{last.earliest}, where the clean {last.instant} stopped, is archived"
    if last.is_partial:
        return f"the clean {last.instant} checked only some of them"
    gone = last.savepoints - {one.requested for one in active.savepoints()}
    if gone:
        return f"the savepoint {min(gone)} was deleted since the clean {last.instant}"
    return None


def _touched(active: ActiveTimeline, last: LastClean, horizon: str) -> Iterator[str]:
    for instant in active.completed():
        # What completed since may have been started long before.
        is_new = instant.requested >= last.earliest or (instant.completed or "") > last.instant
        if is_new and instant.requested < horizon:
            yield from (key.partition for key in touched_by(active, instant).keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest:
    """What the caller of a clean asks for beyond what is set."""

    # How many commits the horizon goes forward at most.
    max_commits: int | None = None
    # These partitions only; the next clean looks at all of them again.
    partitions: tuple[str, ...] | None = None
    # Wait until as many commits have completed as are set, as writes do.
    honour_trigger: bool = False
    # Execute what is pending, and plan nothing.
    only_pending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanDraft:
    """A clean that is not published yet, or has nothing to do."""

    policy: CleanPolicy
    horizon: Horizon
    # What the clean says is readable from then on; an earlier one may have gone further.
    retained: Instant | None = None
    selection: CleanSelection = field(default_factory=CleanSelection)
    # Where it looked, in a sentence; why it would do nothing, if so.
    scope: str = ""
    # Whether nothing has to be looked at.
    is_over: bool = False
    last_write: str = ""
    extra: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        return not (self.selection.files or self.selection.partitions)

    @property
    def files(self) -> tuple[OldFile, ...]:
        return self.selection.files

    @property
    def kept(self) -> tuple[Kept, ...]:
        return self.selection.kept

    @property
    def earliest(self) -> str | None:
        return None if self.retained is None else self.retained.requested


def draft_clean(
    context: Context, snapshot: Snapshot, retention: CleanRetention, plan_request: CleanRequest
) -> CleanDraft:
    """What a clean would do to the table as it is at a moment; writes nothing."""
    framed = frame_clean(context, snapshot, retention, plan_request)
    if framed.is_over:
        return framed
    active = snapshot.timeline.active
    earliest = None if framed.horizon.instant is None else framed.horizon.instant.requested
    is_incremental = context.settings[IS_INCREMENTAL]
    scope = find_scope(active, find_last(active), earliest, is_incremental=is_incremental)
    chosen = scope.partitions if plan_request.partitions is None else plan_request.partitions
    cut = Cut(horizon=earliest, retention=retention, held=held_files(active))
    return replace(
        framed,
        selection=select(partition_views(snapshot, chosen), cut),
        scope=scope.why if plan_request.partitions is None else "The call selects some partitions.",
        last_write=max((one.requested for one in active.completed()), default=""),
        extra=_extra(snapshot, plan_request),
    )


def frame_clean(
    context: Context, snapshot: Snapshot, retention: CleanRetention, plan_request: CleanRequest
) -> CleanDraft:
    """A draft before any partition is looked at; it may be over already."""
    active = snapshot.timeline.active
    last = find_last(active)
    counts_versions = retention.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    horizon = (
        Horizon(why=f"{retention.versions} slices of each file group are retained.")
        if counts_versions
        else find_horizon(
            writes_of(snapshot),
            retention,
            now_ms=context.now_ms(),
            zone=snapshot.layout.zone,
            last=None if last is None else last.earliest,
            commits_max=plan_request.max_commits or context.settings[COMMITS_TO_CLEAN],
        )
    )
    retained = _retained(active, horizon, last)
    framed = CleanDraft(policy=retention.policy, horizon=horizon, retained=retained, extra={})
    if retained is None and not counts_versions:
        is_new = horizon.instant is None
        why = "" if is_new else "No write has completed since the last clean."
        return replace(framed, scope=why, is_over=True)
    waits = _waits(context, snapshot, last) if plan_request.honour_trigger else None
    return framed if waits is None else replace(framed, scope=waits, is_over=True)


def _retained(active: ActiveTimeline, horizon: Horizon, last: LastClean | None) -> Instant | None:
    """The earliest instant as of which everything is there, also after the last clean."""
    if horizon.instant is None or last is None or horizon.instant.requested >= last.earliest:
        return horizon.instant
    later = (one for one in active.completed() if one.requested >= last.earliest)
    return min(later, default=None)


def partition_views(state: Snapshot, partitions: Sequence[str] | None) -> Iterator[PartitionView]:
    """Some partitions with all their slices, or every one; lookups for those only."""
    visibility = state.visibility()
    everything = replace(visibility, replaced={})
    found = state.source(use_metadata=True).files(partitions)
    for partition in sorted(found):
        yield _partition_view(state.storage, partition, found[partition], visibility, everything)


def content_of(storage: Storage, draft: CleanDraft) -> CleanPlan:
    """The plan as Java has it."""
    files: dict[str, list[CleanFile]] = {}
    for file in draft.files:
        named = CleanFile(file_path=storage.uri(file.path))
        files.setdefault(file.partition, []).append(named)
    retained = draft.retained
    return CleanPlan(
        earliest_instant_to_retain=None
        if retained is None
        else RetainedInstant(
            timestamp=retained.requested,
            action=retained.action.value,
            state=retained.state.name,
        ),
        last_completed_commit_timestamp=draft.last_write,
        policy=draft.policy,
        file_paths_to_be_deleted_per_partition={
            partition: tuple(named) for partition, named in files.items()
        },
        partitions_to_be_deleted=draft.selection.partitions,
        extra_metadata=draft.extra,
    )


def _partition_view(
    storage: Storage,
    partition: str,
    files: Sequence[DataFile],
    visibility: Visibility,
    everything: Visibility,
) -> PartitionView:
    groups = file_groups(partition, files, everything)
    replaced = {
        one.key: visibility.replaced[one.key] for one in groups if visibility.is_replaced(one.key)
    }
    names = frozenset(file.name for file in files)
    if groups and len(replaced) == len(groups):
        # It may go as a whole, unless it has files of writes that have not committed.
        there = StorageListing(storage).files((partition,))[partition]
        names |= frozenset(file.name for file in there)
    return PartitionView(
        partition=partition,
        groups=groups,
        replaced=replaced,
        captured=[file for file in files if isinstance(file, LogFile) and file.is_cdc],
        names=names,
    )


def _waits(context: Context, snapshot: Snapshot, last: LastClean | None) -> str | None:
    """Why it is too early for a clean, by Hudi's trigger."""
    since = "" if last is None else last.last_write
    completed = snapshot.timeline.active.completed()
    count = sum(one.requested > since for one in completed)
    wanted = context.settings[TRIGGER_COMMITS]
    if count >= wanted:
        return None
    since_last = f"{count} commits have completed since the last clean"
    return f"{since_last}, and {TRIGGER_COMMITS.key} is {wanted}."


def _extra(snapshot: Snapshot, plan_request: CleanRequest) -> dict[str, str]:
    """What the next clean has to know."""
    savepoints = sorted(one.requested for one in snapshot.timeline.active.savepoints())
    extra = {SAVEPOINTS_KEY: ",".join(savepoints)} if savepoints else {}
    return extra if plan_request.partitions is None else {**extra, PARTIAL_KEY: "true"}
