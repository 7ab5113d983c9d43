"""What instants leave on disk while they run: markers, heartbeats, ledgers and the lock."""

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.state.attempts import HeartbeatView, LedgerRow
from lakewarden.engine.services.inspection.state.rivals import RivalView
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    OnlyInstant,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import moment_of
from lakewarden.table import Table


@dataclass(frozen=True, kw_only=True)
class InstantCall(Call, ABC):
    """A call about what instants have left on storage, about one of them or all."""

    table: TableName = None
    path: TablePath = None
    instant: OnlyInstant = None
    limit: Limit = None
    filter: Filter = ""

    def opened(self, caller: Caller) -> Table:
        """The table that is named."""
        return open_table(caller, self.table, self.path)


@procedure("show_markers")
class ShowMarkers(InstantCall):
    """The notes that are left before data files are written, so that a crash can be undone."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        partition: str
        file_name: Annotated[str, "The data file that was announced."]
        kind: Annotated[str | None, "CREATE, MERGE or APPEND"]
        type: Annotated[str, "DIRECT, or TIMELINE_SERVER_BASED for a line in a list"]
        state: Annotated[str, "needed while its instant is pending, otherwise left_behind"]
        at: datetime | None
        age_seconds: float | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in self.opened(caller).markers(self.instant):
            yield self.Row(
                instant=one.instant,
                partition=one.partition,
                file_name=one.file_name,
                kind=one.kind,
                type=one.type,
                state="needed" if one.is_needed else "left_behind",
                at=moment_of(one.at_ms),
                age_seconds=one.age_seconds,
            )


# So many file groups are named; of more the number tells.
_NAMED_GROUPS = 5


@procedure("show_rivals")
class ShowRivals(InstantCall):
    """The writes and plans that are pending: what they announce, and which give way to which."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        action: str
        operation: Annotated[str | None, "What a write does, such as UPSERT."]
        state: Annotated[str, "live, expired or planned"]
        owner: str
        host: str | None
        step: str | None
        heartbeat_at: datetime | None
        heartbeat_age_seconds: float | None
        expires_at: Annotated[datetime | None, "When it counts as dead without a new heartbeat."]
        partitions_count: int
        file_groups_count: Annotated[int, "The existing file groups that it has announced."]
        rival: Annotated[str | None, "Another instant that is about some of these."]
        common_file_groups_count: int
        common_file_groups: Annotated[str, "The first of them, as partition/file id."]
        gives_way: Annotated[
            bool | None,
            "Whether it gives way to the rival; none where early detection is off, so that the "
            "second one to commit fails.",
        ]

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in self.opened(caller).rivals():
            if self.instant in (None, one.instant, one.rival):
                yield _rival_row(one)


def _rival_row(one: RivalView) -> ShowRivals.Row:
    named = [f"{key.partition}/{key.file_id}".lstrip("/") for key in one.common[:_NAMED_GROUPS]]
    rests = one.is_cancellable is not None and one.last_heartbeat_at_ms is None
    state = "live" if one.is_live else "planned" if rests else "expired"
    return ShowRivals.Row(
        instant=one.instant,
        action=one.action,
        operation=one.operation,
        state=state,
        owner=one.owner,
        host=one.host,
        step=one.step,
        heartbeat_at=moment_of(one.last_heartbeat_at_ms),
        heartbeat_age_seconds=one.heartbeat_age_seconds,
        expires_at=moment_of(one.expires_at_ms),
        partitions_count=len(one.partitions),
        file_groups_count=one.file_groups,
        rival=one.rival,
        common_file_groups_count=len(one.common),
        common_file_groups=", ".join(named),
        gives_way=one.gives_way,
    )


@procedure("show_heartbeats")
class ShowHeartbeats(InstantCall):
    """Who has sent heartbeats, of which instant, and until when they count."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        attempt: Annotated[int, "0 for the heartbeat that Java Hudi writes and reads."]
        owner: str
        state: Annotated[str, "live or expired"]
        step: str | None
        done_ratio: Annotated[float | None, "The progress, from 0 to 1."]
        at: datetime | None
        age_seconds: float | None
        interval_seconds: float
        expires_at: datetime | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for heartbeat in self.opened(caller).heartbeats():
            if self.instant in (None, heartbeat.instant):
                yield _heartbeat_row(heartbeat)


def _heartbeat_row(heartbeat: HeartbeatView) -> ShowHeartbeats.Row:
    return ShowHeartbeats.Row(
        instant=heartbeat.instant,
        attempt=heartbeat.attempt,
        owner=heartbeat.owner,
        state="live" if heartbeat.is_live else "expired",
        step=heartbeat.step or None,
        done_ratio=heartbeat.done / heartbeat.total if heartbeat.total else None,
        at=moment_of(heartbeat.at_ms),
        age_seconds=heartbeat.age_seconds,
        interval_seconds=heartbeat.interval_ms / 1000,
        expires_at=moment_of(heartbeat.expires_at_ms),
    )


@procedure("show_ledger")
class ShowLedger(InstantCall):
    """The entries of an instant's ledger, or of all ledgers; oldest first."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        number: Annotated[int, "The place of the entry in its ledger."]
        entry: Annotated[str, "claim, committed, cancelled, withdrawn or torn"]
        attempt: int | None
        owner: str | None
        host: str | None
        at: datetime | None
        age_seconds: float | None
        completion_time: Annotated[str | None, "The instant at which it was committed."]
        cancelled_by: str | None
        reason: str | None
        handed_back_partitions_count: Annotated[int, "The partitions that the next plan checks."]

    def run(self, caller: Caller) -> Iterable[Row]:
        return map(_ledger_row, self.opened(caller).ledger(self.instant))


def _ledger_row(entry: LedgerRow) -> ShowLedger.Row:
    return ShowLedger.Row(
        instant=entry.instant,
        number=entry.number,
        entry=entry.entry,
        attempt=entry.attempt,
        owner=entry.owner,
        host=entry.host,
        at=moment_of(entry.at_ms),
        age_seconds=entry.age_seconds,
        completion_time=entry.completion_time,
        cancelled_by=entry.by,
        reason=entry.reason,
        handed_back_partitions_count=len(entry.handed_back),
    )


@procedure("show_locks")
class ShowLocks(Call):
    """Whether the table's lock is held, by whom, and until when; looking takes nothing."""

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        lock: Annotated[str, "Its kind and place."]
        state: Annotated[str, "free or held"]
        owner: str | None
        held_since: datetime | None
        age_seconds: float | None
        expires_at: Annotated[datetime | None, "Unless it is renewed; none if it never does."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, self.table, self.path).locks():
            yield self.Row(
                lock=one.lock,
                state="free" if one.owner is None else "held",
                owner=one.owner,
                held_since=moment_of(one.since_ms),
                age_seconds=one.age_seconds,
                expires_at=moment_of(one.expires_at_ms),
            )
