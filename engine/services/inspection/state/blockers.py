"""Blockers: the instants that hold back clean, archive, or the compaction of the metadata table.

Each comes with the call that removes it. Nothing is drafted in full: only the instants that decide
are looked at, so that a table at rest costs a few small calls.

Remedies: the call that removes what stands in the way, for Python and as SQL to copy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.formats.instant_metadata import restore
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.services.archive.run import draft_archive
from lakewarden.engine.services.retention.archive_plan import ArchiveHold, Barrier
from lakewarden.engine.services.retention.horizon import find_horizon, writes_of
from lakewarden.engine.services.retention.settings import retention_of
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context, Service
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    began_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION

_HELD = frozenset({InstantState.INFLIGHT_HELD, InstantState.REQUESTED_HELD})
_CANCELLED = frozenset(
    {
        InstantState.CANCELLED_ROLLBACK_DUE,
        InstantState.CANCELLED_ROLLING_BACK,
        InstantState.CANCELLED_ALIVE,
    }
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to call. Where both are empty, there is nothing to be done but to wait."""

    python: str = ""
    sql: str = ""


@dataclass(frozen=True, slots=True)
class Remedies:
    """The calls for one table, which SQL names by its address."""

    uri: str

    def cancel(self, instant: str, *, force: bool = False) -> Remedy:
        python = f"table.cancel({instant!r}{', force=True' if force else ''})"
        return Remedy(
            python, self._call("cancel_plan", f"instant => '{instant}'", *_forced(force=force))
        )

    def run(self, service: Service, instant: str) -> Remedy:
        words = ("op => 'execute'", f"instants => '{instant}'")
        return Remedy(f"table.{service}.run({instant!r})", self._call(f"run_{service}", *words))

    def compact(self) -> Remedy:
        call = self._call("run_compaction", "op => 'scheduleAndExecute'")
        return Remedy("table.compaction.schedule_and_run()", call)

    def clean(self) -> Remedy:
        return Remedy("table.clean()", self._call("run_clean"))

    def archive(self) -> Remedy:
        return Remedy("table.archive()", self._call("archive_commits"))

    def cluster(self) -> Remedy:
        call = self._call("run_clustering", "op => 'scheduleAndExecute'")
        return Remedy("table.clustering.schedule_and_run()", call)

    def sweep(self) -> Remedy:
        return Remedy("table.sweep()", self._call("sweep"))

    def maintain_metadata(self) -> Remedy:
        return Remedy("table.maintain_metadata()", self._call("run_metadata_maintenance"))

    def roll_back_failed(self) -> Remedy:
        """A clean rolls back failed writes as well."""
        return Remedy("table.rollback_failed_writes()", self._call("run_clean"))

    def roll_back(self, instant: str) -> Remedy:
        call = self._call("rollback_to_instant", f"instant_time => '{instant}'")
        return Remedy(f"table.rollback({instant!r})", call)

    def delete_savepoint(self, instant: str) -> Remedy:
        call = self._call("delete_savepoint", f"instant_time => '{instant}'")
        return Remedy(f"table.delete_savepoint({instant!r})", call)

    def restore(self, instant: str) -> Remedy:
        call = self._call("rollback_to_savepoint", f"instant_time => '{instant}'")
        return Remedy(f"table.restore({instant!r})", call)

    def end(self, snapshot: Snapshot, pending: Pending) -> Remedy:
        """How a pending instant comes to its end."""
        requested, action, is_held = pending.requested, pending.action, pending.state in _HELD
        service = Service.of(action)
        if pending.state in _CANCELLED:
            # Cancelling again resumes the cleanup.
            return self.cancel(requested)
        if action in INGESTION:
            return self.cancel(requested, force=True) if is_held else self.roll_back(requested)
        if service is not None and action in TABLE_SERVICES:
            if scope_of(snapshot, pending.files).is_cancellable:
                return self.cancel(requested)
            if is_held:
                return self.cancel(requested, force=True)
            return self.run(service, requested)
        match action:
            case Action.CLEAN:
                return self.clean()
            case Action.INDEXING:
                return self.cancel(requested)
            case Action.ROLLBACK:
                return self.roll_back_failed()
            case Action.RESTORE:
                return self._restore(snapshot, pending)
            case _:
                return Remedy()

    def _restore(self, snapshot: Snapshot, pending: Pending) -> Remedy:
        """The same restore, called again, resumes it."""
        requested = pending.files.requested
        if requested is None:
            return Remedy()
        content = snapshot.timeline.active.read(requested.instant)
        plan = restore.decode_plan(content, requested.entry.path)
        target = plan.savepoint_to_restore_timestamp
        return self.restore(target) if target else Remedy()

    def _call(self, procedure: str, *words: str) -> str:
        address = self.uri.replace("'", "''")
        arguments = ", ".join((f"path => '{address}'", *words))
        return f"CALL {procedure}({arguments})"


def _forced(*, force: bool) -> tuple[str, ...]:
    return ("force => true",) if force else ()


CLEAN, ARCHIVE, METADATA_COMPACTION = "clean", "archive", "metadata_compaction"
# What holds an archival as it should, without anything being stuck.
_NORMAL = frozenset({ArchiveHold.KEPT, ArchiveHold.DATA_TABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """Something that holds a service back, since when, whose it is, and what to do about it."""

    blocked_service: str
    # The instant, or nothing where settings contradict each other.
    instant: str | None
    action: str
    state: str
    age_seconds: float | None
    owner: str | None
    why: str
    remedy_python: str
    remedy_sql: str


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the table shows at one moment."""

    context: Context
    snapshot: Snapshot
    pending: Mapping[str, Pending]
    remedies: Remedies


def blockers(context: Context) -> tuple[Blocker, ...]:
    """What holds back which service now."""
    return retrying_view(partial(looked, context), partial(find_blockers, context))


def find_blockers(context: Context, snapshot: Snapshot) -> tuple[Blocker, ...]:
    """The same for a moment; its ledgers must be those of what is pending."""
    pending = {one.requested: one for one in pending_instants(context, snapshot)}
    remedies = Remedies(context.storage.location.uri)
    scene = _Scene(context, snapshot, pending, remedies)
    return (*_of_clean(scene), *_of_archive(scene), *_of_metadata(scene))


def _of_clean(scene: _Scene) -> Iterator[Blocker]:
    context, snapshot = scene.context, scene.snapshot
    for one in scene.pending.values():
        if one.action is Action.CLEAN:
            yield _stuck(scene, CLEAN, one, "Cleans run one after the other.")
    try:
        retention = retention_of(context.settings)
    except InvalidRequest as error:
        yield _contradiction(CLEAN, error)
        return
    horizon = find_horizon(
        writes_of(snapshot), retention, now_ms=context.now_ms(), zone=snapshot.layout.zone
    )
    if horizon.held_by is not None:
        yield _stuck(scene, CLEAN, scene.pending[horizon.held_by.requested], horizon.why)
    if horizon.instant is None:
        return
    for savepoint in snapshot.timeline.active.savepoints():
        if savepoint.requested < horizon.instant.requested:
            why = f"The savepoint {savepoint.requested} keeps older files."
            yield _savepoint(scene, CLEAN, savepoint.requested, why)


def _of_archive(scene: _Scene) -> Iterator[Blocker]:
    try:
        held = draft_archive(scene.context, scene.snapshot).held
    except InvalidRequest as error:
        yield _contradiction(ARCHIVE, error)
        return
    if held is None or held.hold in _NORMAL:
        return
    pending = scene.pending.get(held.instant or "")
    if pending is not None:
        yield _stuck(scene, ARCHIVE, pending, held.why)
    elif held.hold is ArchiveHold.SAVEPOINT and held.instant is not None:
        yield _savepoint(scene, ARCHIVE, held.instant, held.why)
    elif held.hold is not ArchiveHold.RETAINED:
        # What a clean retains is as it should be, unless something pending holds the clean back.
        yield _barred(scene, held)


def _of_metadata(scene: _Scene) -> Iterator[Blocker]:
    """Compaction there waits for what is completed there and still pending on the table."""
    config = scene.snapshot.config
    if not config.metadata_partitions or not scene.pending:
        return
    for requested in load_metadata_table(scene.context.storage, config).uncertain():
        if requested in scene.pending:
            why = "It is complete in the metadata table, but may still be rolled back."
            yield _stuck(scene, METADATA_COMPACTION, scene.pending[requested], why)


def _stuck(scene: _Scene, service: str, pending: Pending, why: str) -> Blocker:
    claim = pending.ledger.last_claim
    return _blocker(
        scene,
        service,
        pending.requested,
        action=service_name(pending.action),
        state=pending.state.value,
        owner=None if claim is None else f"{claim.owner} on {claim.host}",
        why=why,
        remedy=scene.remedies.end(scene.snapshot, pending),
    )


def _savepoint(scene: _Scene, service: str, instant: str, why: str) -> Blocker:
    return _blocker(
        scene,
        service,
        instant,
        action=Action.SAVEPOINT.value,
        state="completed",
        owner=None,
        why=why,
        remedy=scene.remedies.delete_savepoint(instant),
    )


def _barred(scene: _Scene, held: Barrier) -> Blocker:
    """An archival held back by something that is not pending."""
    return _blocker(
        scene,
        ARCHIVE,
        held.instant,
        action=held.hold.value,
        state="completed",
        owner=None,
        why=held.why,
        remedy=_remedy_against(scene, held),
    )


def _remedy_against(scene: _Scene, held: Barrier) -> Remedy:
    match held.hold:
        case ArchiveHold.UNCLEANED:
            return scene.remedies.clean()
        case ArchiveHold.COMPACTION:
            return scene.remedies.compact()
        case ArchiveHold.OPEN | ArchiveHold.ROLLBACK:
            return scene.remedies.roll_back_failed()
        case ArchiveHold.SWEEP:
            # Once it is due; cleans do so as well.
            return scene.remedies.sweep()
        case ArchiveHold.METADATA:
            return scene.remedies.maintain_metadata()
        case _:
            return Remedy()


def _contradiction(service: str, error: InvalidRequest) -> Blocker:
    return Blocker(
        blocked_service=service,
        instant=None,
        action="settings",
        state=error.code,
        age_seconds=None,
        owner=None,
        why=str(error),
        remedy_python="",
        remedy_sql="",
    )


def _blocker(
    scene: _Scene,
    service: str,
    instant: str | None,
    *,
    action: str,
    state: str,
    owner: str | None,
    why: str,
    remedy: Remedy,
) -> Blocker:
    at_ms = None if instant is None else began_at_ms(scene.snapshot, instant)
    return Blocker(
        blocked_service=service,
        instant=instant,
        action=action,
        state=state,
        age_seconds=age_seconds(scene.context, at_ms),
        owner=owner,
        why=why,
        remedy_python=remedy.python,
        remedy_sql=remedy.sql,
    )
