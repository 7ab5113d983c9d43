"""What keeps a table in shape: its services, and the state of whatever is pending on it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.cancellation import Cancellation
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import Settled, settle
from lakewarden.engine.plans.sweep import Swept, sweep
from lakewarden.engine.services.archive.result import Archived, TimelineCompacted
from lakewarden.engine.services.archive.run import archive, run_timeline_compaction
from lakewarden.engine.services.clean.draft import CleanWish
from lakewarden.engine.services.clean.result import Cleaned
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.restore.run import Restored, restore
from lakewarden.engine.services.savepoint.run import (
    Savepoint,
    delete_savepoint,
    list_savepoints,
    savepoint,
)
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
        spark: "SparkSession | None" = None,
        group: str = "",
    ) -> Context:
        raise NotImplementedError

    @property
    def compaction(self) -> ServiceDoor:
        """Merges the logs of file groups into new base files."""
        return ServiceDoor(COMPACTION, self._desk)

    @property
    def log_compaction(self) -> ServiceDoor:
        """Puts many small logs of a file group into one."""
        return ServiceDoor(LOG_COMPACTION, self._desk)

    @property
    def clustering(self) -> ServiceDoor:
        """Puts small file groups together, and sorts rows if asked."""
        return ServiceDoor(CLUSTERING, self._desk)

    def cancel(
        self,
        instant: str,
        reason: str | None = None,
        *,
        force: bool = False,
        wait_seconds: float = 0,
        dry_run: bool = False,
    ) -> Cancellation:
        """Cancel whatever is pending at an instant, even while it is being carried out."""
        return cancel(
            self._desk(),
            instant,
            reason or CANCELLED_ON_REQUEST,
            force=force,
            wait_seconds=wait_seconds,
            dry_run=dry_run,
        )

    def clean(
        self,
        *,
        max_commits: int | None = None,
        partitions: Sequence[str] | None = None,
        honour_trigger: bool = False,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> Cleaned:
        """Remove files that are too old for any reader, and what failed work has left."""
        wish = CleanWish(
            max_commits=max_commits,
            partitions=None if partitions is None else tuple(partitions),
            honour_trigger=honour_trigger,
        )
        return clean(self._desk(options, keywords), wish, dry_run=dry_run)

    def archive(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> Archived:
        """Move old instants from the active timeline to the archive."""
        return archive(self._desk(options, keywords), dry_run=dry_run)

    def compact_timeline(
        self, *, dry_run: bool = False, options: Options = None, **keywords: object
    ) -> TimelineCompacted:
        """Merge the files of the archive."""
        return run_timeline_compaction(self._desk(options, keywords), dry_run=dry_run)

    def savepoint(
        self, instant: str | None = None, *, user: str = "", comment: str = ""
    ) -> Savepoint:
        """Keep the table as it was at a write, the newest one if none is named."""
        return savepoint(self._desk(), instant, user=user, comment=comment)

    def delete_savepoint(self, instant: str) -> Savepoint:
        """Let a savepoint go."""
        return delete_savepoint(self._desk(), instant)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """The savepoints there are, oldest first."""
        return list_savepoints(self._desk())

    def restore(self, instant: str, *, dry_run: bool = False) -> Restored:
        """Take the table back to a write or a savepoint; all that came later is undone."""
        return restore(self._desk(), instant, dry_run=dry_run)

    def rollback_failed_writes(
        self, options: Options = None, **keywords: object
    ) -> tuple[Settled, ...]:
        """Bring every instant to its end that nobody works on any more."""
        return settle(self._desk(options, keywords), with_plans=True)

    def sweep(self) -> tuple[Swept, ...]:
        """Remove what paused attempts may have left behind instants that were rolled back."""
        return sweep(self._desk())
