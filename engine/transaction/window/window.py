"""The incremental window: which partitions a new plan of a service has to look at.

Window metadata: what a plan says of itself, so that the next one may go on from it.

A plan with an account names everything it leaves out. Those of other engines do not: what their
filters, their limits or other plans kept from them, they forget.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.conflicts.touched_groups import touched_by
from lakewarden.engine.formats.instant_metadata import compaction, restore, rollback
from lakewarden.engine.formats.instant_metadata import replace as clustering
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.kernel.settings import Setting, flag
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    FOLDER_KEEPER,
    Action,
    Instant,
    InstantFiles,
    epoch_ms,
)
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.state.context import Context, Service
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.plan_scope import plan_scope
from lakewarden.engine.transaction.state.settings import SKEW_MAX_SECONDS, STORAGE_THREADS

STARTED_KEY = "lakewarden.window.begun"
RULES_KEY = "lakewarden.window.rules"


@dataclass(frozen=True, slots=True)
class WindowMetadata:
    """Since when and by which rules everything is in a plan, or named as skipped by it."""

    # Every write that the plan does not know of began at this time or later.
    started: str
    # By what partitions were judged that are not named, as the planner tells it.
    rules: str = ""


def window_metadata_of(snapshot: Snapshot, rules: str) -> WindowMetadata:
    """The account of a plan that is drafted at a moment."""
    active = snapshot.timeline.active
    under_way = (instant.requested for instant in active.pending() if instant.action.is_write)
    return WindowMetadata(min(under_way, default=active.newest_time() or ""), rules)


def window_metadata_in(extra: Mapping[str, str]) -> WindowMetadata | None:
    """The account in a plan's extra metadata, if it has one."""
    started = extra.get(STARTED_KEY)
    return None if started is None else WindowMetadata(started, extra.get(RULES_KEY, ""))


def with_window_metadata(
    service: Service, content: bytes, account: WindowMetadata, missing: Iterable[str]
) -> bytes:
    """A plan with its account, and with partitions that it leaves out besides those it names."""
    path = f"the draft of a {service}"
    if service is Service.CLUSTERING:
        requested = clustering.decode_plan(content, path)
        plan = requested.clustering_plan or clustering.ClusteringPlan()
        plan = replace(
            plan,
            extra_metadata=_extra(plan.extra_metadata, account),
            missing_schedule_partitions=_both(plan.missing_schedule_partitions, missing),
        )
        return clustering.encode_plan(replace(requested, clustering_plan=plan))
    compacted = compaction.decode_plan(content, path)
    return compaction.encode_plan(
        replace(
            compacted,
            extra_metadata=_extra(compacted.extra_metadata, account),
            missing_schedule_partitions=_both(compacted.missing_schedule_partitions, missing),
        )
    )


def _extra(extra: Mapping[str, str], account: WindowMetadata) -> dict[str, str]:
    return {**extra, STARTED_KEY: account.started, RULES_KEY: account.rules}


def _both(named: Iterable[str], missing: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*named, *missing}))


_GONE = "missing_file"


def cancelled_partitions(
    context: Context, snapshot: Snapshot, service: Service, since: str
) -> tuple[str, ...]:
    """The partitions of the plans that were cancelled since a time, and what these skipped.

    One listing, and a look at the ledgers of the instants that have not completed.
    """
    since_ms = heard_until(context, snapshot, since)
    active = snapshot.timeline.active
    completed = {instant.requested for instant in active.instants if instant.is_completed}
    ended = [one for one in instants_with_ledger(context.storage) if one not in completed]
    found: set[str] = set()
    for entry in _cancelled(_ledgers(context, ended)):
        if Service.of(entry.action) is service and entry.at_ms >= since_ms:
            found.update(entry.partitions, entry.missing_partitions)
    return tuple(sorted(found))


def is_returned(ledger: Ledger, heard_ms: Mapping[Service, int | None]) -> bool:
    """Whether no window needs the ledger of an instant that was cancelled.

    `heard_ms` tells for each service until when its last completed plan has heard of what was
    cancelled. Without such a plan the next one looks at all partitions and needs no ledger.
    """
    for entry in _cancelled((ledger,)):
        service = Service.of(entry.action)
        heard = None if service is None else heard_ms.get(service)
        return heard is None or entry.at_ms < heard
    return True


def heard_until(context: Context, snapshot: Snapshot, planned: str) -> int:
    """The time up to which a plan has surely heard of what was cancelled, whatever the clocks."""
    planned_ms = epoch_ms(planned, snapshot.layout.zone) or 0
    return planned_ms - 1000 * context.settings[SKEW_MAX_SECONDS]


def _cancelled(ledgers: Iterable[Ledger | None]) -> Iterator[Cancelled]:
    for ledger in ledgers:
        entry = None if ledger is None else ledger.last_whole
        if isinstance(entry, Cancelled):
            yield entry


def _ledgers(context: Context, instants: list[str]) -> Iterator[Ledger | None]:
    def read(instant: str) -> Ledger | None:
        try:
            return read_ledger(context.storage, instant)
        except CorruptTable as error:
            if error.code != _GONE:
                raise
            # It was removed this very moment, so its partitions are returned already.
            return None

    threads = min(context.settings[STORAGE_THREADS], max(len(instants), 1))
    return LocalExecutor(threads).map(read, instants)


# What a service finds no new work in, by the action it began as; everything else counts.
_NO_WORK_IN = {
    # It leaves base files, and the logs on top of them are those of later writes.
    Service.COMPACTION: frozenset({Action.COMPACTION}),
    Service.LOG_COMPACTION: frozenset({Action.COMPACTION}),
    # It leaves base files as they are. Other compactions make new ones, which may be small, and
    # so may those be that a clustering itself has left.
    Service.CLUSTERING: frozenset({Action.LOG_COMPACTION}),
}
# What was there before may be back.
_UNDOING = frozenset({Action.ROLLBACK, Action.RESTORE})


def touched_since(
    context: Context, snapshot: Snapshot, service: Service, since: str, *, takes_own: bool
) -> tuple[str, ...]:
    """The partitions of all that has completed after a time; one small read for each of these."""
    active = snapshot.timeline.active
    instants = [
        instant
        for instant in active.completed_between(since, None, COMPLETED_WRITES | _UNDOING)
        # What was under way kept its file groups from the plan, whatever has become of it.
        if instant.requested < since or _counts(active, service, instant, takes_own=takes_own)
    ]
    threads = min(context.settings[STORAGE_THREADS], max(len(instants), 1))
    return _union(LocalExecutor(threads).map(partial(_partitions, active), instants))


def touched_between(before: Snapshot, now: Snapshot, service: Service) -> tuple[str, ...]:
    """The partitions of what has completed between two looks at the timeline."""
    known = set(before.timeline.active.completed(COMPLETED_WRITES | _UNDOING))
    active = now.timeline.active
    return _union(
        _partitions(active, instant)
        for instant in active.completed(COMPLETED_WRITES | _UNDOING)
        if instant not in known and _counts(active, service, instant, takes_own=True)
    )


def _counts(active: ActiveTimeline, service: Service, instant: Instant, *, takes_own: bool) -> bool:
    files = active.files_of(instant)
    started_as = instant.action if files is None else files.started_as
    if started_as is service.action and not takes_own:
        return False
    return started_as not in _NO_WORK_IN[service]


def _partitions(active: ActiveTimeline, instant: Instant) -> frozenset[str]:
    read = _OF_UNDOING.get(instant.action)
    if read is None:
        return frozenset(key.partition for key in touched_by(active, instant).keys)
    return read(active.read(instant), active.path(instant))


def _of_rollback(content: bytes, path: str) -> frozenset[str]:
    return frozenset(rollback.decode(content, path).partition_metadata)


def _of_restore(content: bytes, path: str) -> frozenset[str]:
    undone = restore.decode(content, path).hoodie_restore_metadata.values()
    return frozenset(
        partition
        for rollbacks in undone
        for one in rollbacks
        for partition in one.partition_metadata
    )


def _union(groups: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*groups)))


_OF_UNDOING: dict[Action, Callable[[bytes, str], frozenset[str]]] = {
    Action.ROLLBACK: _of_rollback,
    Action.RESTORE: _of_restore,
}


INCREMENTAL: Setting[bool] = Setting(
    "hoodie.table.services.incremental.enabled",
    True,
    flag,
    (
        "Whether plans of compaction, log compaction and clustering check only partitions that "
        "changed since the last plan, or that it skipped"
    ),
)
WINDOW_SETTINGS: tuple[Setting[object], ...] = (INCREMENTAL,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The partitions to plan for, and where they come from."""

    # None means all partitions of the table.
    partitions: tuple[str, ...] | None
    # The requested time of the service's last completed plan: where the window begins.
    since: str | None = None
    # In a sentence: since when, or why all partitions are looked at.
    why: str
    # What is touched since, what earlier plans skipped, and what cancelled plans have left.
    touched: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    handed_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """A completed plan at which a window may begin."""

    instant: str
    account: WindowMetadata
    missing: tuple[str, ...]


def find_window(
    context: Context,
    snapshot: Snapshot,
    service: Service,
    rules: str = "",
    *,
    takes_own: bool = True,
) -> Window:
    """The window of a service at a moment; what it costs depends on what has changed.

    `rules` is what a planner goes by when it leaves out a file group for good, without naming its
    partition; a plan that went by others is none to begin at. `takes_own` says whether what the
    service itself has made may be work for it again.
    """
    if not context.settings[INCREMENTAL]:
        return _all(f"{INCREMENTAL.key} is off")
    try:
        start = _start(context, snapshot, service, rules)
        if isinstance(start, str):
            return _all(start)
        return _since(context, snapshot, service, start, takes_own=takes_own)
    except CorruptTable as error:
        return _all(f"the changes are not known. {error}".rstrip("."))


def heard_of(context: Context, snapshot: Snapshot) -> dict[Service, int | None]:
    """For each service until when its last completed plan has heard of what was cancelled."""
    return {service: _heard(context, snapshot, service) for service in Service}


def _since(
    context: Context, snapshot: Snapshot, service: Service, start: _Start, *, takes_own: bool
) -> Window:
    touched = touched_since(context, snapshot, service, start.instant, takes_own=takes_own)
    carried = tuple(sorted({*start.missing, *_skipped_since(snapshot, service, start.instant)}))
    back = cancelled_partitions(context, snapshot, service, start.instant)
    return Window(
        partitions=tuple(sorted({*touched, *carried, *back})),
        since=start.instant,
        why=(
            f"Since the {service.words} {start.instant}, partitions written to: "
            f"{len(touched)}, skipped by plans: {len(carried)}, returned by cancelled plans: "
            f"{len(back)}."
        ),
        touched=touched,
        carried=carried,
        handed_back=back,
    )


def _start(context: Context, snapshot: Snapshot, service: Service, rules: str) -> _Start | str:
    """The newest completed plan to begin at, or why there is none."""
    completed = [files for files in _plans(snapshot, service) if files.completed is not None]
    word, others = service.words, 0
    for files in reversed(completed):
        start = _start_at(snapshot, files)
        if start is None:
            others += 1
        elif start.account.rules == rules:
            return start if _is_whole(context, snapshot, start) else _archived_since(word, start)
    if others < len(completed):
        return f"the last {word} had other settings"
    if others:
        return f"no completed {word} plan records what it skipped; plans of other engines do not"
    if _has_archive(context, snapshot):
        return f"the last completed {word} is archived, if there was one"
    return f"no {word} has completed yet"


def _start_at(snapshot: Snapshot, files: InstantFiles) -> _Start | None:
    assert files.requested is not None
    content = snapshot.timeline.active.read(files.requested.instant)
    scope = plan_scope(files.started_as, content, files.requested.entry.path)
    account = window_metadata_in(scope.extra)
    if account is None:
        return None
    return _Start(files.instant.requested, account, scope.missing_partitions)


def _is_whole(context: Context, snapshot: Snapshot, start: _Start) -> bool:
    """Whether all that the plan does not know of is on the active timeline still.

    Instants are archived in the order in which they began. One that began before the plan may have
    completed after it, and then be archived before it.
    """
    first = snapshot.timeline.first_active
    is_reached = first is not None and first <= start.account.started
    return is_reached or not _has_archive(context, snapshot)


def _skipped_since(snapshot: Snapshot, service: Service, since: str) -> set[str]:
    """What plans of any engine skipped that were published since."""
    later = (files for files in _plans(snapshot, service) if files.instant.requested > since)
    return {
        partition for files in later for partition in scope_of(snapshot, files).missing_partitions
    }


def _plans(snapshot: Snapshot, service: Service) -> list[InstantFiles]:
    """The plans of a service on the active timeline, pending and completed, oldest first."""
    return [
        files
        for files in snapshot.timeline.active.files
        if files.started_as is service.action and files.requested is not None
    ]


def _heard(context: Context, snapshot: Snapshot, service: Service) -> int | None:
    try:
        for files in reversed(_plans(snapshot, service)):
            if files.completed is not None and (start := _start_at(snapshot, files)) is not None:
                return heard_until(context, snapshot, start.instant)
    except CorruptTable:
        # No window begins at a plan that is not readable, so the next one leaves nothing out.
        return None
    return None


def _has_archive(context: Context, snapshot: Snapshot) -> bool:
    files = context.storage.list(snapshot.layout.history_folder).files
    return any(file.name != FOLDER_KEEPER for file in files)


def _archived_since(word: str, start: _Start) -> str:
    return f"some writes that ran while the {word} {start.instant} was planned are archived"


def _all(why: str) -> Window:
    return Window(partitions=None, why=f"All partitions are checked, because {why}.")
