"""The reload: what the table says at one moment. Nothing learned before the lock counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.settings import SKEW_MAX_SECONDS
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Instant
from lakewarden.engine.timeline.layouts import Layout
from lakewarden.engine.timeline.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.timeline.roll_forward import RolledForward, roll_forward
from lakewarden.engine.timeline.state import LedgerEnd
from lakewarden.engine.timeline.timeline import Timeline

WRITABLE_VERSIONS = (9,)
# Plans end one by one, and a look takes less time than what leads to an end.
LOOKS_MAX = 5
_GONE = "missing_file"

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Moment:
    """Properties, timeline, the ledgers of what is pending, and the times that come next."""

    config: TableConfig
    timeline: Timeline
    times: TimeSource
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    # What was committed and not published; it is now.
    rolled_forward: tuple[RolledForward, ...] = ()
    # Pending plans that whoever looks has make room for him.
    overlooked: frozenset[str] = frozenset()

    @property
    def layout(self) -> Layout:
        return self.config.layout

    def ledger(self, instant: str) -> Ledger:
        """The ledger of a pending instant; one without entries where there is none."""
        return self.ledgers.get(instant, Ledger(instant))

    def pending(self, requested: str) -> InstantFiles | None:
        """The files of the pending instant of that time."""
        for instant in self.timeline.active.with_time(requested):
            if not instant.is_completed:
                return self.timeline.active.files_of(instant)
        return None

    def completed_write(self, requested: str) -> Instant | None:
        """The completed write of that time."""
        found = self.timeline.active.with_time(requested)
        return next((i for i in found if i.is_completed and i.action.is_write), None)


def seen(look_now: Callable[[], Moment], view: Callable[[Moment], ValueT]) -> ValueT:
    """What a look at the table shows.

    What it names may be removed by others before it is read; then a look a moment later shows it
    no more. What is missing each time is damage.
    """
    for _ in range(LOOKS_MAX - 1):
        try:
            return view(look_now())
        except CorruptTable as error:
            if error.code != _GONE:
                raise
    return view(look_now())


def look(context: Context) -> Moment:
    """What the table says now; without the lock it is a hint."""
    moment = observe(context)
    if moment.config.version not in WRITABLE_VERSIONS:
        raise _read_only(moment.config.version)
    return moment


def observe(context: Context) -> Moment:
    """The same for whoever only shows it: tables of all versions that can be read."""
    config = load_config(context.storage)
    timeline = Timeline.load(context.storage, config.layout)
    return Moment(config, timeline, _times(context, config.layout, timeline))


def reload(context: Context) -> Moment:
    """What the table says now, everything committed being published; the caller has the lock.

    A crash in the middle leaves some of the committed instants unpublished; the next one goes on.
    """
    moment = look(context)
    ledgers = pending_ledgers(context, moment)
    unpublished = [ledger for ledger in ledgers.values() if is_committed(ledger)]
    torn = torn_completion(context, moment)
    if torn is not None:
        unpublished.append(torn)
    rolled = tuple(roll_forward(context.storage, moment.timeline, ledger) for ledger in unpublished)
    if rolled:
        moment = look(context)
    return Moment(moment.config, moment.timeline, moment.times, ledgers, rolled)


def pending_ledgers(context: Context, moment: Moment) -> dict[str, Ledger]:
    """The ledgers of all pending instants, oldest first; costs nothing when none is pending."""
    pending = dict.fromkeys(instant.requested for instant in moment.timeline.active.pending())
    return {requested: read_ledger(context.storage, requested) for requested in pending}


def torn_completion(context: Context, moment: Moment) -> Ledger | None:
    """The ledger of the newest completed instant, if a crash cut its file short.

    Whoever has the lock next mends it, so looking at the newest one is enough.
    """
    active = moment.timeline.active
    completed = [instant for instant in active.instants if instant.is_completed]
    newest = max(completed, key=lambda instant: instant.completed or "", default=None)
    # Read as it lies there: the timeline itself would give what the ledger says in its place.
    if newest is None or is_whole_container(context.storage.read(active.path(newest))):
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


def _read_only(version: int) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_table_version",
        what=f"The table has version {version}, which is read but not written.",
        why="Only version 9 is written: what other versions expect of a writer differs.",
        now="Upgrade the table with Hudi.",
        version=version,
    )
