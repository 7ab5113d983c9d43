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
from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.cancellation import Cancellation
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import Settled, settle
from lakewarden.engine.plans.foreseen import foresee_settling
from lakewarden.engine.plans.remaining_markers import remove_markers
from lakewarden.engine.plans.reset import Reset, reset
from lakewarden.engine.plans.sweep import Swept, sweep
from lakewarden.engine.plans.window import WINDOW_SETTINGS
from lakewarden.engine.services.archive.result import Archived, TimelineCompacted
from lakewarden.engine.services.archive.run import archive, run_timeline_compaction
from lakewarden.engine.services.archive.settings import ARCHIVE_SETTINGS
from lakewarden.engine.services.clean.draft import CleanWish
from lakewarden.engine.services.clean.result import Cleaned
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clean.settings import CLEAN_SETTINGS
from lakewarden.engine.services.clustering.prune import Pruned, prune
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.clustering.settings import CLUSTERING_SETTINGS
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.compaction.settings import COMPACTION_SETTINGS
from lakewarden.engine.services.expiry import EXPIRY_SETTINGS
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.log_compaction.settings import LOG_COMPACTION_SETTINGS
from lakewarden.engine.services.metadata_table.result import MetadataMaintenance
from lakewarden.engine.services.metadata_table.service import ALL_SERVICES, maintain_metadata_table
from lakewarden.engine.services.metadata_table.settings import METADATA_SERVICE_SETTINGS
from lakewarden.engine.services.removal import (
    Removal,
    drop_partitions,
    expire_partitions,
    truncate,
)
from lakewarden.engine.services.restore.run import Restored, restore
from lakewarden.engine.services.savepoint.run import (
    Savepoint,
    delete_savepoint,
    list_savepoints,
    savepoint,
)
from lakewarden.engine.services.stale import (
    InflightView,
    StaleEnd,
    end_stale,
    inflight_instants,
)
from lakewarden.engine.services.state.attempts import AttemptView, BeatView, attempts, beats
from lakewarden.engine.services.state.blockers import Blocker, blockers
from lakewarden.engine.services.state.explained import Explained, explain_plan
from lakewarden.engine.services.state.health import HealthRow, health
from lakewarden.engine.services.state.ledgers import LedgerRow, ledger_of, ledgers
from lakewarden.engine.services.state.locks import LockView, locks
from lakewarden.engine.services.state.markers import MarkerView, markers
from lakewarden.engine.services.state.plans import PendingPlan, plans
from lakewarden.service_door import CANCELLED_ON_REQUEST, Options, ServiceDoor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableServices:
    """The services of a table; `Table` says what to work on."""

    def _desk(
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
    def compaction(self) -> ServiceDoor:
        """Merges the logs of file groups into new base files."""
        return ServiceDoor(COMPACTION, self._desk, (*COMPACTION_SETTINGS, *WINDOW_SETTINGS))

    @property
    def log_compaction(self) -> ServiceDoor:
        """Merges many small logs of a file group into one."""
        return ServiceDoor(LOG_COMPACTION, self._desk, (*LOG_COMPACTION_SETTINGS, *WINDOW_SETTINGS))

    @property
    def clustering(self) -> ServiceDoor:
        """Merges small file groups, and optionally sorts rows."""
        return ServiceDoor(CLUSTERING, self._desk, (*CLUSTERING_SETTINGS, *WINDOW_SETTINGS))

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
            self._desk(),
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
        context = self._desk(
            options, keywords, own=CLEAN_SETTINGS, parameters=parameters_of(self.clean)
        )
        wish = CleanWish(
            max_commits=at_least_one("max_commits", max_commits),
            partitions=partition_paths(context, partitions),
            honour_trigger=honour_trigger,
            only_pending=only_pending,
        )
        return clean(context, wish, dry_run=dry_run)

    def archive(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> Archived:
        """Move old instants from the active timeline to the archive."""
        refuse_limit("archive", keywords, "min_commits and max_commits")
        return archive(self._desk(options, keywords, own=ARCHIVE_SETTINGS), dry_run=dry_run)

    def compact_timeline(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> TimelineCompacted:
        """Merge the files of the archive."""
        return run_timeline_compaction(self._desk(options, keywords), dry_run=dry_run)

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
        return savepoint(self._desk(), named, user=user, comment=comment, dry_run=dry_run)

    def delete_savepoint(self, instant: str, *, dry_run: bool = False) -> Savepoint:
        """Delete a savepoint; cleans may then delete its files."""
        return delete_savepoint(self._desk(), instant_text(instant), dry_run=dry_run)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """All savepoints, oldest first."""
        return list_savepoints(self._desk())

    def restore(
        self, instant: str, *, from_savepoint: bool = False, dry_run: bool = False
    ) -> Restored:
        """Restore the table to a write or a savepoint; later instants are undone.

        With `from_savepoint` the instant must have a savepoint.
        """
        target = instant_text(instant)
        return restore(self._desk(), target, from_savepoint=from_savepoint, dry_run=dry_run)

    def delete_markers(self, instant: str, *, dry_run: bool = False) -> int:
        """Delete the markers of a finished instant; returns their number."""
        return remove_markers(self._desk(), instant_text(instant), dry_run=dry_run)

    def drop_partitions(
        self,
        partitions: Sequence[str],
        *,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> Removal:
        """Delete partitions by their paths; returns what was deleted. Empty ones are no error.

        Their files stay readable as of earlier times until a clean removes them.
        """
        return drop_partitions(self._desk(options, keywords), partitions, dry_run=dry_run)

    def truncate(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> Removal:
        """Delete all rows; returns what was deleted."""
        return truncate(self._desk(options, keywords), dry_run=dry_run)

    def expire_partitions(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> Removal:
        """Delete partitions whose last write is older than the retention setting."""
        context = self._desk(options, keywords, own=EXPIRY_SETTINGS)
        return expire_partitions(context, dry_run=dry_run)

    def inflight_instants(self, min_age_minutes: int = 0) -> tuple[InflightView, ...]:
        """Pending plans and writes of at least this age."""
        return inflight_instants(self._desk(), min_age_minutes)

    def end_stale(
        self, min_age_minutes: int, *, with_writes: bool = False, dry_run: bool = False
    ) -> tuple[StaleEnd, ...]:
        """Roll back stale plans of at least this age, and stale writes if requested."""
        return end_stale(self._desk(), min_age_minutes, with_writes=with_writes, dry_run=dry_run)

    def reset_plan(
        self, instant: str, *, removes_plan: bool = False, dry_run: bool = False
    ) -> Reset:
        """Roll back the failed attempts of a plan, and optionally the plan."""
        named = instant_text(instant)
        return reset(self._desk(), named, removes_plan=removes_plan, dry_run=dry_run)

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
        return prune(self._desk(options), named, files, allow_empty=allow_empty, dry_run=dry_run)

    def rollback_failed_writes(
        self, options: Options = None, *, dry_run: bool = False, **keywords: object
    ) -> tuple[Settled, ...]:
        """Recover all failed instants: roll each back, or complete it."""
        context = self._desk(options, keywords)
        if dry_run:
            return foresee_settling(context, with_plans=True)
        return settle(context, with_plans=True)

    def sweep(self, *, dry_run: bool = False) -> tuple[Swept, ...]:
        """Delete files that paused attempts left after their instants were rolled back."""
        return sweep(self._desk(), dry_run=dry_run)

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
        context = self._desk(options, keywords, own=METADATA_SERVICE_SETTINGS)
        return maintain_metadata_table(context, services=chosen, dry_run=dry_run)

    def plans(self) -> tuple[PendingPlan, ...]:
        """All pending plans of all services, with their workers."""
        return plans(self._desk())

    def explain_plan(self, instant: str) -> tuple[Explained, ...]:
        """What a pending plan takes, and what it leaves to the next plan."""
        return explain_plan(self._desk(), instant_text(instant))

    def attempts(self) -> tuple[AttemptView, ...]:
        """The attempts at pending instants."""
        return attempts(self._desk())

    def beats(self) -> tuple[BeatView, ...]:
        """All heartbeats."""
        return beats(self._desk())

    def blockers(self) -> tuple[Blocker, ...]:
        """What holds back clean, archive and the metadata table, and the remedy."""
        return blockers(self._desk())

    def ledger(self, instant: str | None = None) -> tuple[LedgerRow, ...]:
        """The ledger of an instant: its attempts and its end; without an instant all ledgers."""
        if instant is None:
            return ledgers(self._desk())
        return ledger_of(self._desk(), instant_text(instant))

    def locks(self) -> tuple[LockView, ...]:
        """The lock that writers of the table share, and its holder."""
        return locks(self._desk())

    def markers(self, instant: str | None = None) -> tuple[MarkerView, ...]:
        """The markers of an instant, one per data file; without an instant all markers."""
        return markers(self._desk(), None if instant is None else instant_text(instant))

    def health(self, options: Options = None) -> tuple[HealthRow, ...]:
        """Figures of the table's health, each with the call that improves it."""
        return health(self._desk(options))
