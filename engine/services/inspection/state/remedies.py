"""Remedies: the call that removes what stands in the way, for Python and as SQL to copy."""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import restore
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.pending_instants import Pending
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.service import TABLE_SERVICES, Service

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
