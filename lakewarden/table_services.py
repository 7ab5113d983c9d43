"""What keeps a table in shape: its services, and the state of whatever is pending on it."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lakewarden.call_checks import (
    at_least_one,
    instant_text,
    metadata_services,
    parameters_of,
    partition_paths,
    refuse_limit,
    seconds,
    yes_or_no,
)
from lakewarden.context_factory import Options
from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.kernel.shown import Listed
from lakewarden.engine.services.archive.run import (
    Archived,
    TimelineCompacted,
    archive,
    run_timeline_compaction,
)
from lakewarden.engine.services.clean.draft import CleanRequest
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.prune import Pruned, prune
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.clustering.settings import CLUSTERING_SETTINGS
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.compaction.settings import COMPACTION_SETTINGS
from lakewarden.engine.services.inspection.state.attempts import (
    AttemptView,
    HeartbeatView,
    LedgerRow,
    LockView,
    MarkerView,
    attempts,
    heartbeats,
    ledger_of,
    ledgers,
    locks,
    markers,
)
from lakewarden.engine.services.inspection.state.blockers import Blocker, blockers
from lakewarden.engine.services.inspection.state.health import HealthRow, health
from lakewarden.engine.services.inspection.state.plans import (
    Explained,
    PendingPlan,
    explain_plan,
    plans,
)
from lakewarden.engine.services.inspection.state.rivals import RivalView, rivals
from lakewarden.engine.services.log_compaction.service import (
    LOG_COMPACTION,
    LOG_COMPACTION_SETTINGS,
)
from lakewarden.engine.services.metadata_table.service import (
    ALL_SERVICES,
    METADATA_SERVICE_SETTINGS,
    MetadataMaintenance,
    maintain_metadata_table,
)
from lakewarden.engine.services.removal import (
    EXPIRY_SETTINGS,
    PartitionRemoval,
    drop_partitions,
    expire_partitions,
    truncate,
)
from lakewarden.engine.services.restore.run import Restored, restore
from lakewarden.engine.services.retention.clean_plan import Cleaned
from lakewarden.engine.services.retention.settings import ARCHIVE_SETTINGS, CLEAN_SETTINGS
from lakewarden.engine.services.savepoint.run import (
    Savepoint,
    delete_savepoint,
    list_savepoints,
    savepoint,
)
from lakewarden.engine.services.stale import InflightView, StaleEnd, end_stale, inflight_instants
from lakewarden.engine.services.streams import StreamView, forget_stream, stream_views
from lakewarden.engine.transaction.cancel.cancel import Cancellation, cancel
from lakewarden.engine.transaction.dry_run import dry_run_recovery, dry_run_rollback
from lakewarden.engine.transaction.recovery.failed_writes import Recovered, recover_failed_instants
from lakewarden.engine.transaction.reset import Reset, reset
from lakewarden.engine.transaction.rollback.execution import RolledBack
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.sweep.sweep import Swept, remove_markers, sweep
from lakewarden.engine.transaction.window.window import WINDOW_SETTINGS
from lakewarden.table_service_handle import CANCELLED_ON_REQUEST, TableServiceHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableServices:
    """The services of a table; `Table` says what to work on."""

    def _context_factory(
        self,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        *,
        own: Sequence[Setting[object]] = (),
        parameters: Collection[str] = (),
        spark: "SparkSession | None" = None,
        group: str = "",
    ) -> Context:
        raise NotImplementedError

    @property
    def compaction(self) -> TableServiceHandle:
        """Merges the logs of file groups into new base files."""
        return TableServiceHandle(
            COMPACTION, self._context_factory, (*COMPACTION_SETTINGS, *WINDOW_SETTINGS)
        )

    @property
    def log_compaction(self) -> TableServiceHandle:
        """Merges many small logs of a file group into one."""
        return TableServiceHandle(
            LOG_COMPACTION, self._context_factory, (*LOG_COMPACTION_SETTINGS, *WINDOW_SETTINGS)
        )

    @property
    def clustering(self) -> TableServiceHandle:
        """Merges small file groups, and optionally sorts rows."""
        return TableServiceHandle(
            CLUSTERING, self._context_factory, (*CLUSTERING_SETTINGS, *WINDOW_SETTINGS)
        )

    def cancel(
        self,
        instant: str,
        reason: str | None = None,
        *,
        force: bool = False,
        wait_seconds: float = 0,
        dry_run: bool = False,
    ) -> Cancellation:
        """Cancel a pending instant, even while it is running."""
        return cancel(
            self._context_factory(),
            instant_text(instant),
            reason or CANCELLED_ON_REQUEST,
            force=yes_or_no("force", force),
            wait_seconds=seconds("wait_seconds", wait_seconds) or 0,
            dry_run=dry_run,
        )

    def clean(
        self,
        *,
        max_commits: int | None = None,
        partitions: Sequence[str] | None = None,
        honour_trigger: bool = False,
        only_pending: bool = False,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> Cleaned:
        """Delete files that no retained snapshot needs, and leftovers of failed writes.

        With `only_pending` the call finishes pending cleans and plans none.
        """
        refuse_limit("clean", keywords, "max_commits and partitions")
        context = self._context_factory(
            options, keywords, own=CLEAN_SETTINGS, parameters=parameters_of(self.clean)
        )
        plan_request = CleanRequest(
            max_commits=at_least_one("max_commits", max_commits),
            partitions=partition_paths(context, partitions),
            honour_trigger=honour_trigger,
            only_pending=only_pending,
        )
        return clean(context, plan_request, dry_run=dry_run)

    def archive(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> Archived:
        """Move old instants from the active timeline to the archive."""
        refuse_limit("archive", keywords, "min_commits and max_commits")
        return archive(
            self._context_factory(options, keywords, own=ARCHIVE_SETTINGS), dry_run=dry_run
        )

    def compact_timeline(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> TimelineCompacted:
        """Merge the files of the archive."""
        return run_timeline_compaction(self._context_factory(options, keywords), dry_run=dry_run)

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        dry_run: bool = False,
    ) -> Savepoint:
        """Create a savepoint at a write, by default the newest."""
        named = None if instant is None else instant_text(instant)
        return savepoint(
            self._context_factory(), named, user=user, comment=comment, dry_run=dry_run
        )

    def delete_savepoint(self, instant: str, *, dry_run: bool = False) -> Savepoint:
        """Delete a savepoint; cleans may then delete its files."""
        return delete_savepoint(self._context_factory(), instant_text(instant), dry_run=dry_run)

    def savepoints(self) -> Listed[Savepoint]:
        """All savepoints, oldest first."""
        return Listed(list_savepoints(self._context_factory()))

    def restore(
        self, instant: str, *, from_savepoint: bool = False, dry_run: bool = False
    ) -> Restored:
        """Restore the table to a write or a savepoint; later instants are undone.

        With `from_savepoint` the instant must have a savepoint.
        """
        target = instant_text(instant)
        return restore(
            self._context_factory(), target, from_savepoint=from_savepoint, dry_run=dry_run
        )

    def rollback(
        self, instant: str, options: Options = None, *, dry_run: bool = False, **keywords: object
    ) -> RolledBack:
        """Roll back a write: a pending one, or the newest completed one."""
        context = self._context_factory(options, keywords)
        undo = dry_run_rollback if dry_run else rollback
        return undo(context, instant_text(instant))

    def delete_markers(self, instant: str, *, dry_run: bool = False) -> int:
        """Delete the markers of a finished instant; returns their number."""
        return remove_markers(self._context_factory(), instant_text(instant), dry_run=dry_run)

    def drop_partitions(
        self,
        partitions: Sequence[str],
        *,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> PartitionRemoval:
        """Delete partitions by their paths; returns what was deleted. Empty ones are no error.

        Their files stay readable as of earlier times until a clean removes them.
        """
        return drop_partitions(
            self._context_factory(options, keywords), partitions, dry_run=dry_run
        )

    def truncate(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> PartitionRemoval:
        """Delete all rows; returns what was deleted."""
        return truncate(self._context_factory(options, keywords), dry_run=dry_run)

    def expire_partitions(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> PartitionRemoval:
        """Delete partitions whose last write is older than the retention setting."""
        context = self._context_factory(options, keywords, own=EXPIRY_SETTINGS)
        return expire_partitions(context, dry_run=dry_run)

    def inflight_instants(self, min_age_minutes: int = 0) -> Listed[InflightView]:
        """Pending plans and writes of at least this age."""
        return Listed(inflight_instants(self._context_factory(), min_age_minutes))

    def end_stale(
        self, min_age_minutes: int, *, with_writes: bool = False, dry_run: bool = False
    ) -> Listed[StaleEnd]:
        """Roll back stale plans of at least this age, and stale writes if requested."""
        context = self._context_factory()
        return Listed(end_stale(context, min_age_minutes, with_writes=with_writes, dry_run=dry_run))

    def reset_plan(
        self, instant: str, *, removes_plan: bool = False, dry_run: bool = False
    ) -> Reset:
        """Roll back the failed attempts of a plan, and optionally the plan."""
        named = instant_text(instant)
        return reset(self._context_factory(), named, removes_plan=removes_plan, dry_run=dry_run)

    def prune_plan(
        self,
        instant: str,
        files: Sequence[str] | None = None,
        options: Options = None,
        *,
        allow_empty: bool = False,
        dry_run: bool = False,
    ) -> Pruned:
        """Replace a pending clustering plan by one without some of its files.

        Without names these are the unreadable files. The files stay in the table.
        """
        named = instant_text(instant)
        return prune(
            self._context_factory(options), named, files, allow_empty=allow_empty, dry_run=dry_run
        )

    def rollback_failed_writes(
        self, options: Options = None, *, dry_run: bool = False, **keywords: object
    ) -> Listed[Recovered]:
        """Recover all failed instants: roll each back, or complete it."""
        context = self._context_factory(options, keywords)
        if dry_run:
            return Listed(dry_run_recovery(context, with_plans=True))
        return Listed(recover_failed_instants(context, with_plans=True))

    def sweep(self, *, dry_run: bool = False) -> Listed[Swept]:
        """Delete files that paused attempts left after their instants were rolled back."""
        return Listed(sweep(self._context_factory(), dry_run=dry_run))

    def maintain_metadata(
        self,
        services: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> MetadataMaintenance:
        """Clean, compact and archive the metadata table, or run some of these services."""
        chosen = ALL_SERVICES if services is None else metadata_services(services)
        context = self._context_factory(options, keywords, own=METADATA_SERVICE_SETTINGS)
        return maintain_metadata_table(context, services=chosen, dry_run=dry_run)

    def plans(self) -> Listed[PendingPlan]:
        """All pending plans of all services, with their workers."""
        return Listed(plans(self._context_factory()))

    def explain_plan(self, instant: str) -> Listed[Explained]:
        """What a pending plan takes, and what it leaves to the next plan."""
        return explain_plan(self._context_factory(), instant_text(instant))

    def attempts(self) -> Listed[AttemptView]:
        """The attempts at pending instants."""
        return Listed(attempts(self._context_factory()))

    def heartbeats(self) -> Listed[HeartbeatView]:
        """All heartbeats."""
        return Listed(heartbeats(self._context_factory()))

    def blockers(self) -> Listed[Blocker]:
        """What holds back clean, archive and the metadata table, and the remedy."""
        return Listed(blockers(self._context_factory()))

    def ledger(self, instant: str | None = None) -> Listed[LedgerRow]:
        """The ledger of an instant: its attempts and its end; without an instant all ledgers."""
        if instant is None:
            return Listed(ledgers(self._context_factory()))
        return Listed(ledger_of(self._context_factory(), instant_text(instant)))

    def streams(self) -> Listed[StreamView]:
        """The streams that write to the table, and the newest batch of each."""
        return Listed(stream_views(self._context_factory()))

    def forget_stream(
        self, stream: str, *, force: bool = False, dry_run: bool = False
    ) -> StreamView:
        """Forget what a stream has written, so that its next batch is taken for the first one."""
        return forget_stream(self._context_factory(), stream, force=force, dry_run=dry_run)

    def locks(self) -> Listed[LockView]:
        """The lock that writers of the table share, and its holder."""
        return Listed(locks(self._context_factory()))

    def markers(self, instant: str | None = None) -> Listed[MarkerView]:
        """The markers of an instant, one per data file; without an instant all markers."""
        return Listed(
            markers(self._context_factory(), None if instant is None else instant_text(instant))
        )

    def rivals(self) -> Listed[RivalView]:
        """The pending writes and plans, what they announce, and which give way to which."""
        return Listed(rivals(self._context_factory()))

    def health(self, options: Options = None) -> Listed[HealthRow]:
        """Figures of the table's health, each with the call that improves it."""
        return Listed(health(self._context_factory(options)))
