"""The context of an operation: the table's storage and lock, the ports, and what has been set.

The services whose plans lie on the timeline until they are executed.

Loading: the snapshot that an operation decides by. Nothing learned before the lock counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Setting, Settings, flag
from lakewarden.engine.locks.table_lock import TableLock
from lakewarden.engine.metadata.writing.builds import list_as_ready
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import Loaded, Memory, Snapshot, load_table
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import together
from lakewarden.engine.table.config import load_config
from lakewarden.engine.table.versions import OLDEST, refuse_read_only
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Layout
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Committed
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.timeline.roll_forward import roll_forward
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.transaction.state.rollback_plans import (
    Rollbacks,
    is_taken_back,
    pending_rollbacks,
)
from lakewarden.engine.transaction.state.settings import SKEW_MAX_SECONDS


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the protocol's steps need; nothing is decided by what it remembers."""

    storage: Storage
    lock: TableLock
    ports: Ports
    settings: Settings
    memory: Memory = field(default_factory=Memory)
    # It publishes compactions only: what they make is the same in all versions.
    only_folds: bool = False

    def now_ms(self) -> int:
        return self.ports.clock.now_ms()


class Service(StrEnum):
    """A table service that works by plans."""

    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    CLUSTERING = "clustering"

    @property
    def action(self) -> Action:
        """The action under which its plans are on the timeline."""
        return _ACTIONS[self]

    @property
    def words(self) -> str:
        """What a sentence calls it."""
        return self.replace("_", " ")

    @classmethod
    def of(cls, action: Action) -> "Service | None":
        """The service that begins as an action, if it is one."""
        return next((service for service, own in _ACTIONS.items() if own is action), None)


_ACTIONS = {
    Service.COMPACTION: Action.COMPACTION,
    Service.LOG_COMPACTION: Action.LOG_COMPACTION,
    Service.CLUSTERING: Action.CLUSTERING,
}
TABLE_SERVICES = frozenset(_ACTIONS.values())


def _cancellable(service: Service, *, default: bool) -> Setting[bool]:
    return Setting(
        f"lakewarden.{service}.cancellable",
        default,
        flag,
        f"Whether new {service.words} plans give way to writes and can be cancelled",
    )


CANCELLABLE: dict[Service, Setting[bool]] = {
    # A compaction leaves the logs of others valid, and readers wait for it.
    Service.COMPACTION: _cancellable(Service.COMPACTION, default=False),
    Service.LOG_COMPACTION: _cancellable(Service.LOG_COMPACTION, default=True),
    Service.CLUSTERING: _cancellable(Service.CLUSTERING, default=True),
}


def is_cancellable(settings: Settings, service: Service, asked: bool | None) -> bool:
    """Whether a new plan may be cancelled: as asked for, else as it is set."""
    return settings[CANCELLABLE[service]] if asked is None else asked


def load_for_writing(
    context: Context, loaded: Loaded | None = None, *, publishes: bool = True
) -> Snapshot:
    """What the table says now; without the lock it is a hint. A table that is only read is refused.

    The caller may have loaded properties and timeline right before, for the settings in them. One
    that publishes no instant may change what properties say of any table.
    """
    snapshot = load_for_display(context, loaded)
    if publishes:
        refuse_read_only(snapshot.config, context.storage, only_folds=context.only_folds)
        _refuse_beside(context, snapshot)
    return snapshot


def _refuse_beside(context: Context, snapshot: Snapshot) -> None:
    """Refuse to fold logs of version 6 while a write is pending: it may add to those of a plan."""
    if context.only_folds and snapshot.config.version == OLDEST:
        for pending in snapshot.timeline.active.pending(COMPLETED_WRITES):
            raise Conflict(
                "table_busy",
                what=f"The {pending.action.value} {pending.requested} has not ended.",
                why="In version 6 it may still write to logs that a compaction is about to fold.",
                now="Let Hudi finish it or roll it back, then try again.",
                instant=pending.requested,
            )


def load_for_display(context: Context, loaded: Loaded | None = None) -> Snapshot:
    """The same for display: all versions that can be read."""
    config, timeline = loaded or load_table(context.storage, context.memory)
    times = _times(context, config.layout, timeline)
    memory = context.memory
    return Snapshot(
        context.storage,
        config,
        timeline,
        next_times=times,
        metadata_layout=memory.metadata_layout,
        closed=memory.closed,
    )


def reload_under_lock(context: Context, *known: Ledger, publishes: bool = True) -> Snapshot:
    """What the table says now, everything committed being published; the caller has the lock.

    Steps of `reload`: load, ledgers, ready, roll-forward, load-again. A crash in the
    middle leaves some of the committed instants unpublished; the next one goes on.
    """
    snapshot = load_for_writing(context, publishes=publishes)
    ledgers = pending_ledgers(context, snapshot, *known)
    unpublished = list(unpublished_in(snapshot, ledgers))
    torn = torn_completion(context, snapshot)
    if torn is not None:
        unpublished.append(torn)
    for ledger in unpublished:
        publish_index(context, ledger)
    rolled = tuple(
        roll_forward(context.storage, snapshot.timeline, ledger) for ledger in unpublished
    )
    if rolled:
        snapshot = load_for_writing(context, publishes=publishes)
    return replace(snapshot, ledgers=ledgers, rolled_forward=rolled, is_locked=True)


def publish_index(context: Context, ledger: Ledger) -> None:
    """Steps `reload.ready` and `index-completion.ready`: what a committed build has made is listed.

    That comes before its completed file, as in Java; readers use it from here on.
    """
    last = ledger.last_whole
    if isinstance(last, Committed) and last.action is Action.INDEXING:
        path = f"the ledger of {ledger.instant}"
        list_as_ready(context.storage, load_config(context.storage), last.content, path)


def pending_ledgers(context: Context, snapshot: Snapshot, *known: Ledger) -> dict[str, Ledger]:
    """The ledgers of all pending instants, oldest first; known ones are not read again."""
    have = {ledger.instant: ledger for ledger in known}
    pending = dict.fromkeys(instant.requested for instant in snapshot.timeline.active.pending())
    unread = [one for one in pending if one not in have]
    reads = [partial(read_ledger, context.storage, one) for one in unread]
    have |= dict(zip(unread, together(context.storage, reads), strict=True))
    return {one: have[one] for one in pending}


def unpublished_in(snapshot: Snapshot, ledgers: Mapping[str, Ledger]) -> Iterator[Ledger]:
    """Those of pending instants that are committed, but not what others without a ledger undo."""
    committed = [ledger for ledger in ledgers.values() if is_committed(ledger)]
    rollbacks = pending_rollbacks(snapshot.timeline.active) if committed else Rollbacks()
    for ledger in committed:
        if not is_taken_back(snapshot.timeline.active, rollbacks, ledger):
            yield ledger


def torn_completion(context: Context, snapshot: Snapshot) -> Ledger | None:
    """The ledger of the newest completed instant, if a crash cut its file short.

    The next holder of the lock mends it, so looking at the newest one is enough.
    """
    active = snapshot.timeline.active
    completed = [instant for instant in active.instants if instant.is_completed]
    newest = max(completed, key=lambda instant: instant.completed or "", default=None)
    if newest is None or not active.is_torn(newest):
        return None
    ledger = read_ledger(context.storage, newest.requested)
    return ledger if is_committed(ledger) else None


def is_committed(ledger: Ledger) -> bool:
    return ledger.ends_in is LedgerEnd.COMMITTED


def _times(context: Context, layout: Layout, timeline: Timeline) -> TimeSource:
    return TimeSource(
        context.ports.clock,
        layout.zone,
        timeline.active.newest_time(),
        skew_max_seconds=context.settings[SKEW_MAX_SECONDS],
    )
