"""Rivals: whether a write is going to lose, by what others have announced and completed since.

Detection saves work, and is no safety: the commit decides by its own rules. So whatever goes wrong
in a look is reported and passed over, and the next look tries again.

Giving way: the error of a write that stops early, and the wait before it is tried again.

A write that is tried again at once meets the same rival. So it waits until that one has ended, or
looks dead, and says for whom.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lakewarden.engine.conflicts.conflicts import (
    AGAIN,
    Conflicting,
    ConflictKind,
    ConflictStrategy,
    ObservedInstants,
    find_conflicts,
)
from lakewarden.engine.conflicts.group_hashes import (
    AnnouncedHashes,
    GroupHashes,
    excluded_by_bloom,
    named_in,
    read_hashes,
)
from lakewarden.engine.conflicts.touched_groups import (
    PLANNED,
    Announced,
    Precedence,
    ReadScope,
    announced_by,
)
from lakewarden.engine.detection.strategies import WAIT_SECONDS, DetectionRules, Strategy
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.events import Event, Figures
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline, load_active, open_archive
from lakewarden.engine.transaction.start import may_be_preempted
from lakewarden.engine.transaction.state.context import Context, load_for_display
from lakewarden.engine.transaction.state.live_attempt import (
    LiveAttempt,
    Pulses,
    live_attempt,
    newest_heartbeat,
)
from lakewarden.engine.transaction.state.markers import AnnouncementReader
from lakewarden.engine.transaction.state.plan_scope import INGESTION

# Reading the names of so many bytes takes as long as reading the hashes.
_NAMES_BYTES_MAX = 32 << 10


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Own:
    """What a write is about to touch, and what it has decided by."""

    instant: str
    groups: frozenset[FileGroupId]
    # Those of the groups that get log files only.
    appended: frozenset[FileGroupId] = frozenset()
    read_scopes: Sequence[ReadScope] = ()
    snapshot: Snapshot
    strategy: ConflictStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another instant that a write gives way to, and the file groups both are about."""

    instant: str
    action: str
    kind: ConflictKind
    groups: tuple[FileGroupId, ...]
    # Who works on it, where it is known to be alive.
    held_by: LiveAttempt | None = None


@dataclass(slots=True)
class _Known:
    """What was read of another write, none of which changes any more."""

    hashes: AnnouncedHashes | None = None
    # What of these is named as well, once that was looked up.
    named: tuple[FileGroupId, ...] | None = None
    announced: Announced | None = None
    is_excluded: bool = False


@dataclass(eq=False)
class RivalFinder:
    """Looks again and again for one write; what it has read of others it remembers."""

    context: Context
    rules: DetectionRules
    own: Own
    _reader: AnnouncementReader = field(init=False, repr=False)
    _pulses: Pulses = field(init=False, repr=False)
    _hashes: GroupHashes = field(init=False, repr=False)
    _seen: ObservedInstants = field(init=False, repr=False)
    _known: dict[str, _Known] = field(default_factory=dict, init=False, repr=False)
    _harmless: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self._reader = AnnouncementReader(self.context.storage)
        self._pulses = Pulses(self.context)
        self._hashes = GroupHashes.of(self.own.groups, self.own.strategy)
        self._seen = ObservedInstants.of(self.own.snapshot.timeline.active)

    def find(self, *, has_announced: bool = True) -> Rival | None:
        """The first one to give way to; None if there is none, or if that can't be known now."""
        try:
            active = load_active(self.context.storage, self.own.snapshot.layout)
            active.share_contents(self.context.memory.completed)
            return next(self._rivals(active, has_announced=has_announced), None)
        except LakewardenError as error:
            figures = {"instant": self.own.instant, "reason": str(error)}
            self.context.ports.events(Event("early_look_failed", figures))
            return None

    def _rivals(self, active: ActiveTimeline, *, has_announced: bool) -> Iterator[Rival]:
        yield from self._ended(active)
        for instant in active.pending(INGESTION):
            if instant.requested != self.own.instant:
                groups = self._common(active, instant, has_announced=has_announced)
                rival = self._live(instant, groups) if groups else None
                if rival is not None:
                    yield rival

    def _ended(self, active: ActiveTimeline) -> Iterator[Rival]:
        """By the rules of the commit: what has completed, and plans that do not give way."""
        plans = {one.requested for one in active.pending(PLANNED)}
        strategy = self.own.strategy
        if plans <= self._harmless:
            if not self.rules.checks_commits:
                return
            strategy = replace(strategy, prefers_writers=True)
        timeline = self._timeline(active)
        found = find_conflicts(
            self.own.groups,
            self._seen,
            timeline,
            strategy,
            appended=self.own.appended,
            read_scopes=self.own.read_scopes,
        )
        for one in found:
            if self._counts(timeline, one):
                action = one.action.value
                yield Rival(
                    instant=one.instant,
                    action=action,
                    kind=one.kind,
                    groups=_groups_of(found, one),
                    held_by=self._holder(one),
                )
        self._harmless |= plans

    def _counts(self, timeline: Timeline, one: Conflicting) -> bool:
        if one.kind is not ConflictKind.PLANNED:
            return self.rules.checks_commits
        ledgers = {one.instant: read_ledger(self.context.storage, one.instant)}
        now = replace(self.own.snapshot, timeline=timeline, ledgers=ledgers)
        return not may_be_preempted(self.context, now, one.instant)

    def _holder(self, one: Conflicting) -> LiveAttempt | None:
        if one.kind is not ConflictKind.PLANNED:
            return None
        return live_attempt(self.context, read_ledger(self.context.storage, one.instant))

    def _common(
        self, active: ActiveTimeline, instant: Instant, *, has_announced: bool
    ) -> tuple[FileGroupId, ...]:
        """The file groups of both, if the other one stays when both are alive.

        One that has announced nothing yet, under the lock, gives way to all that have; towards
        Java, and those who do not take the lock, the older one stays.
        """
        is_older = instant.requested < self.own.instant
        is_first = self.rules.strategy is Strategy.TRANSACTIONAL
        if not is_older and (has_announced or not is_first):
            return ()
        known = self._known_of(active, instant)
        if known.is_excluded:
            return ()
        stays = partial(self._stays, is_older=is_older, has_announced=has_announced)
        if known.hashes is not None:
            return self._in_hashes(active, instant, known) if stays(known.hashes.precedence) else ()
        if known.announced is None:
            known.announced = announced_by(active, instant)
        announced = known.announced
        if not self._stays(announced.precedence, is_older=is_older, has_announced=has_announced):
            return ()
        if announced.precedence is None:
            return self._in_both(self._of_another_engine(active, instant))
        return self._in_both(announced.touched.keys)

    def _in_hashes(
        self, active: ActiveTimeline, instant: Instant, known: _Known
    ) -> tuple[FileGroupId, ...]:
        """By their hashes first; the names are looked up where these agree."""
        assert known.hashes is not None
        if known.named is None:
            found = self._hashes.among(known.hashes.hashes)
            content = active.read(instant) if found else b""
            known.named = tuple(sorted(named_in(content, found, self.own.strategy)))
        return known.named

    def _stays(self, precedence: Precedence | None, *, is_older: bool, has_announced: bool) -> bool:
        """Whether the other one stays."""
        if self.rules.strategy is not Strategy.TRANSACTIONAL or precedence is None:
            return is_older
        return is_older and precedence is Precedence.INSTANT if has_announced else True

    def _known_of(self, active: ActiveTimeline, instant: Instant) -> _Known:
        """What the storage tells of another write; read once it has said what it touches."""
        requested, files = instant.requested, active.files_of(instant)
        inflight = files.inflight if files else None
        if inflight is None or not inflight.entry.size_bytes:
            return _Known(is_excluded=inflight is None)
        if requested not in self._known:
            known = self._known[requested] = _Known()
            if inflight.entry.size_bytes > _NAMES_BYTES_MAX:
                groups, strategy = self.own.groups, self.own.strategy
                storage = self.context.storage
                if self.rules.strategy.has_bloom:
                    known.is_excluded = excluded_by_bloom(storage, requested, groups, strategy)
                if not known.is_excluded:
                    known.hashes = read_hashes(storage, requested)
        return self._known[requested]

    def _of_another_engine(
        self, active: ActiveTimeline, instant: Instant
    ) -> frozenset[FileGroupId]:
        """Its inflight file does not name all; its markers tell more, and later."""
        # Whose it is makes no difference to the names.
        now = replace(self.own.snapshot, timeline=self._timeline(active), ledgers={})
        partitions = {key.partition for key in self.own.groups}
        announced = self._reader.read(now, instant, partitions)
        return announced.with_those_among(self.own.groups).keys

    def _in_both(self, keys: frozenset[FileGroupId]) -> tuple[FileGroupId, ...]:
        identity = self.own.strategy.identity
        theirs = {identity(key) for key in keys}
        return tuple(sorted(key for key in self.own.groups if identity(key) in theirs))

    def _timeline(self, active: ActiveTimeline) -> Timeline:
        return Timeline(active, open_archive(self.context.storage, active.layout))

    def _live(self, instant: Instant, groups: tuple[FileGroupId, ...]) -> Rival | None:
        """Whether another write is under way still; asked only about those that share groups."""
        ledger = read_ledger(self.context.storage, instant.requested)
        if ledger.ends_in is LedgerEnd.CANCELLED:
            return None
        held_by = self._pulses.live_attempt(ledger)
        # One that has committed and is not published is about to complete in any case.
        if held_by is None and ledger.ends_in is not LedgerEnd.COMMITTED:
            return None
        return Rival(
            instant=instant.requested,
            action=instant.action.value,
            kind=ConflictKind.UNDER_WAY,
            groups=groups,
            held_by=held_by,
        )


def _groups_of(found: Sequence[Conflicting], one: Conflicting) -> tuple[FileGroupId, ...]:
    keys = {
        FileGroupId(each.partition, each.file_id)
        for each in found
        if each.instant == one.instant and each.kind is one.kind and each.file_id
    }
    return tuple(sorted(keys))


GAVE_WAY = "early_write_conflict"

# Another attempt starts from the table as it is then.
_MENDED = frozenset({"write_conflict", "files_vanished", "snapshot_outdated", GAVE_WAY})
_LOOKS_EVERY_SECONDS = 1.0
_SAYS_AFTER_SECONDS = 5.0
_NAMED_GROUPS = 3


def early_write_conflict(requested: str, rival: Rival, now_ms: int) -> Conflict:
    """The error of a write that gives way before it has made its files."""
    other = f"{rival.action} {rival.instant}"
    first = rival.groups[0] if rival.groups else None
    held = rival.held_by
    is_plan = rival.kind is ConflictKind.PLANNED
    is_live = rival.kind is ConflictKind.UNDER_WAY
    standing = "is under way" if is_live else rival.kind.value
    return Conflict(
        GAVE_WAY,
        what=f"The write {requested} gave way to the {other}{_places(rival)}.",
        why=f"The {other} {standing}{_holder(held, now_ms)}.",
        now="Nothing was changed. Run the plan or cancel it, then write again."
        if is_plan
        else AGAIN,
        instant=rival.instant,
        action=rival.action,
        partition=first.partition if first else "",
        file_id=first.file_id if first else "",
        file_groups=tuple(f"{key.partition}/{key.file_id}".lstrip("/") for key in rival.groups),
        conflicts=len(rival.groups),
        owner=held.owner if held else "",
        host=held.host if held else "",
        step=held.step if held else "",
        heartbeat_age_ms=_age_ms(held, now_ms),
        expires_ms=held.expires_ms if held else None,
    )


def begins_again(context: Context, error: Conflict, retries: int) -> bool:
    """Whether a write is to begin anew; it has waited for the one that it gave way to."""
    if retries == 0 or error.code not in _MENDED:
        return False
    if error.code == GAVE_WAY:
        wait_for_rival(context, error)
    figures: Figures = {"code": error.code, "left": retries - 1, "reason": str(error)}
    context.ports.events(Event("write_retried", figures))
    return True


def wait_for_rival(context: Context, error: Conflict) -> None:
    """Wait until the one that a write gave way to has ended, or its heartbeat has expired.

    As long as is set at most; a caller who cancels ends it. A rival that has completed, or is a
    plan on which no process works, is not waited for.
    """
    most, clock = context.settings[WAIT_SECONDS], context.ports.clock
    began = clock.elapsed_seconds()
    says_next = _SAYS_AFTER_SECONDS
    while (waited := clock.elapsed_seconds() - began) < most:
        context.ports.check_wanted()
        if not _is_under_way(context, str(error.parameters["instant"])):
            return
        if waited >= says_next:
            context.ports.events(_waiting(error, waited, most - waited))
            says_next = waited * 2
        clock.sleep(min(_LOOKS_EVERY_SECONDS, most - waited))


def _is_under_way(context: Context, instant: str) -> bool:
    """Whether an instant is pending, and alive; as long as that is unknown it counts as such."""
    try:
        if load_for_display(context).pending(instant) is None:
            return False
        ledger = read_ledger(context.storage, instant)
        if ledger.ends_in in (LedgerEnd.CANCELLED, LedgerEnd.COMMITTED):
            return False
        return newest_heartbeat(context, ledger) is HeartbeatSign.LIVE
    except LakewardenError:
        return True


def _waiting(error: Conflict, waited: float, left: float) -> Event:
    found = error.parameters
    by = f" by {found['owner']} on {found['host']}" if found["host"] else ""
    rival = f"{found['action']} {found['instant']}"
    return Event("rival_waited", {"rival": rival, "by": by, "waited": waited, "left": left})


def _places(rival: Rival) -> str:
    """Some of the file groups that both are about."""
    if not rival.groups:
        return ""
    named = [
        f"{key.file_id} of partition {key.partition!r}" for key in rival.groups[:_NAMED_GROUPS]
    ]
    left = len(rival.groups) - len(named)
    more = f" and {left} more" if left else ""
    word = "group" if len(rival.groups) == 1 else "groups"
    return f" at file {word} {', '.join(named)}{more}"


def _holder(held: LiveAttempt | None, now_ms: int) -> str:
    if held is None:
        return ""
    age_ms = _age_ms(held, now_ms)
    step = f", at step {held.step!r}" if held.step else ""
    age = "" if age_ms is None else f"; its last heartbeat is {age_ms / 1000:.1f} s old"
    by = f"{held.owner} on {held.host}" if held.host else held.owner
    return f", by {by}{step}{age}"


def _age_ms(held: LiveAttempt | None, now_ms: int) -> int | None:
    if held is None or held.beaten_at_ms is None:
        return None
    return max(now_ms - held.beaten_at_ms, 0)
