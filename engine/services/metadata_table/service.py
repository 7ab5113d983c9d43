"""The metadata table's services, apart from writes: clean, compaction, log compaction, archive.

A commit compacts after it has ended, if it is time. What runs here runs under the table's lock, as
in Java, but for the folding of a compaction.

The settings of the metadata table's own services: Hudi's own keys and defaults.

What the metadata table's services have come to, each with what was done or why nothing.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.settings import Setting, Settings, flag
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.metadata.writing.compact import (
    DELTACOMMITS_MAX,
    UPKEEP_SETTINGS,
    deltacommits_since,
    draft_compaction,
    pending_compactions,
)
from lakewarden.engine.metadata.writing.log_compact import (
    LOG_BLOCKS_MIN,
    LOG_COMPACTION_ENABLED,
    compact_logs,
    draft_log_compaction,
    withdraw_log_compactions,
)
from lakewarden.engine.metadata.writing.writer import refuse_unheard, refuse_unmaintained
from lakewarden.engine.services.archive.run import archive_metadata
from lakewarden.engine.services.metadata_table.clean import (
    clean_metadata,
    draft_metadata_clean,
    finish_cleans,
)
from lakewarden.engine.services.retention.archive_plan import ArchiveLimits
from lakewarden.engine.services.retention.settings import (
    CleanRetention,
    limits_of,
    lsm_limits,
    retention_of,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, epoch_ms
from lakewarden.engine.transaction.metadata_compaction import (
    Compacted,
    compact_metadata,
    held_compaction,
)
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.pending_instants import describe_pending
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS

CLEANS_LIKE_TABLE = Setting(
    "hoodie.metadata.derive.from.datatable.clean.policy",
    True,
    flag,
    "Whether the metadata table keeps its past as the table does, a little longer; otherwise two "
    "slices of each of its file groups stay",
)
METADATA_SERVICE_SETTINGS: tuple[Setting[object], ...] = (*UPKEEP_SETTINGS, CLEANS_LIKE_TABLE)

# By Hudi's reckoning: so much longer than the table, and as many commits in any case.
_LONGER = 1.2
_COMMITS_MIN = 20
_VERSIONS_OTHERWISE = 2


def metadata_retention(settings: Settings) -> CleanRetention:
    """What a clean of the metadata table keeps."""
    if not settings[CLEANS_LIKE_TABLE]:
        policy = CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        return CleanRetention(policy=policy, versions=_VERSIONS_OTHERWISE)
    table = retention_of(settings)
    return CleanRetention(
        policy=table.policy,
        commits=max(_COMMITS_MIN, int(table.commits * _LONGER)),
        hours=math.ceil(table.hours * _LONGER),
        versions=math.ceil(table.versions * _LONGER),
    )


def metadata_limits(settings: Settings) -> ArchiveLimits:
    """How much of the metadata table's timeline stays active: a write more than of its table's."""
    limits = limits_of(settings)
    return ArchiveLimits(
        limits.keep_min + 1,
        limits.keep_max + 1,
        goes_beyond_savepoints=limits.goes_beyond_savepoints,
    )


class MetadataService(StrEnum):
    """The services of the metadata table, in the order in which they run."""

    CLEAN = "clean"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceBlocker:
    """A pending instant of the table that a service waits for."""

    instant: str
    action: str
    age_seconds: int | None
    # Who works on it, and what can be done about it.
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MetadataStep(Shown):
    """The answer of one service; it is true when something was done, or would be."""

    service: MetadataService
    is_done: bool = False
    # Its instant on the metadata table's timeline; an archival has none, and a dry run neither.
    instant: str | None = None
    # Why nothing was done, in a sentence.
    why_nothing: str | None = None
    blocker: MaintenanceBlocker | None = None
    # File groups compacted, files deleted, or instants archived.
    items: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return self.is_done

    def __str__(self) -> str:
        if not self.is_done:
            return f"{self.service}: nothing, {self.why_nothing}"
        return f"{self.service} {self.instant or ''}".rstrip() + f": {self.items} items"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MetadataMaintenance(Shown):
    """The answers of all services that were asked for."""

    steps: tuple[MetadataStep, ...] = ()
    # Instants of dead writers, which were executed or rolled back first.
    settled: tuple[str, ...] = ()
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return any(self.steps) or bool(self.settled)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    @property
    def by_service(self) -> Mapping[MetadataService, MetadataStep]:
        return {step.service: step for step in self.steps}


ALL_SERVICES = tuple(MetadataService)


def maintain_metadata_table(
    context: Context,
    *,
    services: Collection[MetadataService] = ALL_SERVICES,
    honour_triggers: bool = False,
    dry_run: bool = False,
    seen: Snapshot | None = None,
) -> MetadataMaintenance:
    """Run services of the metadata table, and say of each what was done or why nothing.

    With `honour_triggers` they run when Hudi would run them within a write, and the lock is taken
    only if one is due; otherwise a compaction waits for nothing but something to compact. A dry run
    says what would be done as things are, or were when they were `seen`.

    Steps of `metadata-services`: lock, reload, recover, clean, unlock, compaction, lock-again,
    log-compaction, archive, unlock-again. Logs are compacted where there was no compaction. A crash
    before the archive leaves an instant that the next call, or the next write, finishes or takes
    back; in it, instants that are active and archived.
    """
    if dry_run or honour_triggers:
        run = _Run(context, seen or load_for_writing(context), honours=honour_triggers, is_dry=True)
        run.seen = None if seen is None else seen.metadata
        dry_run_result = MetadataMaintenance(steps=_steps(run, services), is_dry_run=dry_run)
        if dry_run or not dry_run_result:
            return dry_run_result
    with context.lock.hold() as held:
        run = _Run(context, reload_under_lock(context), honours=honour_triggers, held=held)
        if not run.snapshot.config.metadata_partitions:
            return MetadataMaintenance(steps=_steps(run, services))
        refuse_unmaintained(context.storage, run.snapshot.config)
        refuse_unheard(run.snapshot.metadata)
        run.recover()
        steps = _steps(run, _chosen(services, MetadataService.CLEAN))
    run.held = None
    steps += _steps(run, _chosen(services, MetadataService.COMPACTION))
    rest = _chosen(services, MetadataService.LOG_COMPACTION, MetadataService.ARCHIVE)
    if rest:
        with context.lock.hold() as run.held:
            run.snapshot = reload_under_lock(context)
            steps += _steps(run, rest)
    return MetadataMaintenance(steps=steps, settled=tuple(run.settled))


def _chosen(
    services: Collection[MetadataService], *some: MetadataService
) -> tuple[MetadataService, ...]:
    return tuple(one for one in some if one in services)


def _steps(run: "_Run", services: Collection[MetadataService]) -> tuple[MetadataStep, ...]:
    chosen = [service for service in MetadataService if service in services]
    if not run.snapshot.config.metadata_partitions:
        why = "The table has no metadata table."
        return tuple(MetadataStep(service=one, why_nothing=why) for one in chosen)
    return tuple(run.step(service) for service in chosen)


@dataclass(slots=True)
class _Run:
    """One call: it looks at the metadata table anew before each service."""

    context: Context
    snapshot: Snapshot
    honours: bool
    held: HeldLock | None = None
    is_dry: bool = False
    has_compacted: bool = False
    seen: MetadataTable | None = None
    # What others had left, and is finished or withdrawn now.
    settled: list[str] = field(default_factory=list)

    def recover(self) -> None:
        """Step `metadata-services.recover`."""
        state = self._state()
        left = [one.requested for one in state.timeline.active.pending((Action.LOG_COMPACTION,))]
        if withdraw_log_compactions(state):
            state = self._state()
        self.settled += (*left, *finish_cleans(state, self.context.ports))

    def step(self, service: MetadataService) -> MetadataStep:
        if self.held is not None:
            self.held.assert_held()
        return _RUNNERS[service](self, self._state())

    def clean(self, state: MetadataTable) -> MetadataStep:
        retention = metadata_retention(self.context.settings)
        draft = draft_metadata_clean(state, retention, now_ms=self.context.now_ms())
        if not draft.files:
            return MetadataStep(service=MetadataService.CLEAN, why_nothing=draft.why)
        instant = None
        if not self.is_dry:
            instant = clean_metadata(state, draft, self.snapshot.times, self.context.ports)
        return MetadataStep(
            service=MetadataService.CLEAN,
            is_done=True,
            instant=instant,
            items=len(draft.files),
            bytes=draft.size_bytes,
        )

    def compaction(self, state: MetadataTable) -> MetadataStep:
        """It takes the lock itself, at its beginning and its end."""
        service = MetadataService.COMPACTION
        wanted = self.context.settings[DELTACOMMITS_MAX] if self.honours else 1
        done = None if self.is_dry else self._compacted(wanted)
        if done is not None:
            self.has_compacted = True
            return MetadataStep(
                service=service,
                is_done=True,
                instant=done.instant,
                items=len(done.stats),
                bytes=sum(stat.file_size_in_bytes for stat in done.stats),
            )
        state = self._state()
        held = held_compaction(self.context, state)
        if held is not None:
            return MetadataStep(service=service, why_nothing=held)
        uncertain, since = state.uncertain(), deltacommits_since(state)
        if uncertain:
            return self._blocked(service, min(uncertain))
        if since < wanted:
            why = f"There are {since} deltacommits since the last one; {wanted} are needed."
            return MetadataStep(service=service, why_nothing=why)
        operations = draft_compaction(state, self.snapshot.config).operations if self.is_dry else ()
        if not operations:
            return MetadataStep(service=service, why_nothing="There are no logs.")
        return MetadataStep(service=service, is_done=True, items=len(operations))

    def _compacted(self, deltacommits_min: int) -> Compacted | None:
        """One more than those that others have left."""
        while done := compact_metadata(self.context, deltacommits_min=deltacommits_min):
            if not done.was_left:
                return done
            self.settled.append(done.instant)
        return None

    def log_compaction(self, state: MetadataTable) -> MetadataStep:
        service, settings = MetadataService.LOG_COMPACTION, self.context.settings
        if self.has_compacted:
            return MetadataStep(service=service, why_nothing="There are no logs left.")
        if pending_compactions(state):
            return MetadataStep(service=service, why_nothing="A compaction of it is pending.")
        if self.honours and not settings[LOG_COMPACTION_ENABLED]:
            why = f"{LOG_COMPACTION_ENABLED.key} is false."
            return MetadataStep(service=service, why_nothing=why)
        config, times = self.snapshot.config, self.snapshot.times
        blocks_min = settings[LOG_BLOCKS_MIN]
        draft = draft_log_compaction(state, config, times, blocks_min=blocks_min)
        if draft.waits_for is not None:
            return self._blocked(service, draft.waits_for)
        if draft.instant is None:
            why = f"No file group has {blocks_min} blocks in its logs."
            return MetadataStep(service=service, why_nothing=why)
        if self.is_dry:
            return MetadataStep(service=service, is_done=True, items=len(draft.slices))
        stats = compact_logs(state, draft, self.context.ports)
        return MetadataStep(
            service=service,
            is_done=True,
            instant=draft.instant,
            items=len(stats),
            bytes=sum(stat.file_size_in_bytes for stat in stats),
        )

    def archive(self, state: MetadataTable) -> MetadataStep:
        settings = self.context.settings
        archived = archive_metadata(
            state.storage,
            state.timeline.active,
            state.data_timeline.active,
            metadata_limits(settings),
            lsm_limits(settings),
            deltacommits=settings[DELTACOMMITS_MAX],
            threads=settings[STORAGE_THREADS],
            dry_run=self.is_dry,
        )
        return MetadataStep(
            service=MetadataService.ARCHIVE,
            is_done=bool(archived),
            why_nothing=archived.why_nothing,
            items=len(archived.instants),
        )

    def _state(self) -> MetadataTable:
        if self.is_dry and self.seen is not None:
            return self.seen
        self.seen = load_metadata_table(self.context.storage, self.snapshot.config)
        self.snapshot.times.move_past(self.seen.timeline.active.newest_time())
        return self.seen

    def _blocked(self, service: MetadataService, requested: str) -> MetadataStep:
        """What a pending instant keeps from being done."""
        active = self.snapshot.timeline.active
        pending = next(one for one in active.pending() if one.requested == requested)
        since_ms = epoch_ms(requested, self.snapshot.layout.zone)
        age = None if since_ms is None else max(self.context.now_ms() - since_ms, 0) // 1000
        remedy = describe_pending(self.context, self.snapshot, pending)
        return MetadataStep(
            service=service,
            why_nothing=f"The {pending.action.value} {requested} is pending. {remedy}",
            blocker=MaintenanceBlocker(
                instant=requested, action=pending.action.value, age_seconds=age, remedy=remedy
            ),
        )


_RUNNERS: dict[MetadataService, Callable[[_Run, MetadataTable], MetadataStep]] = {
    MetadataService.CLEAN: _Run.clean,
    MetadataService.COMPACTION: _Run.compaction,
    MetadataService.LOG_COMPACTION: _Run.log_compaction,
    MetadataService.ARCHIVE: _Run.archive,
}
