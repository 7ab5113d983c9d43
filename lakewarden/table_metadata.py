"""What a table keeps about itself: its partitions and files, its metadata table and indexes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakewarden.context_factory import Options
from lakewarden.engine.file_groups.listing import FileSource
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.index.options import INDEX_TYPE
from lakewarden.engine.kernel.shown import Listed
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.sizes import MetadataSizes
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.builds import BuildDone
from lakewarden.engine.read.query.plan_query import Time, slices_as_of
from lakewarden.engine.read.query.retention import Retention, retention
from lakewarden.engine.services.deduplicate import Deduplicated, repair_deduplicate
from lakewarden.engine.services.indexing.build import (
    build_index,
    build_metadata_table,
    create_index,
    refresh_index,
    run_pending_builds,
)
from lakewarden.engine.services.indexing.drop import drop_index, drop_metadata
from lakewarden.engine.services.indexing.index_views import (
    IndexBuilt,
    IndexDropped,
    IndexSet,
    IndexView,
    index_views,
)
from lakewarden.engine.services.indexing.request import IndexRequest, WantedIndex
from lakewarden.engine.services.indexing.run_build import pending_indexing, run_build
from lakewarden.engine.services.indexing.set_index import set_index
from lakewarden.engine.services.inspection.column_statistics import (
    FileColumn,
    Overlap,
    file_statistics,
    overlaps,
)
from lakewarden.engine.services.inspection.history.history import History
from lakewarden.engine.services.inspection.metadata_table import (
    ComparedFile,
    compare_files,
    metadata_listing,
    metadata_sizes,
)
from lakewarden.engine.services.inspection.validation.run import CheckResult, validate
from lakewarden.engine.services.options import SPARK_BYTES_MIN, given_options, keep_settings
from lakewarden.engine.services.repairs import (
    PartitionFile,
    PropertyChange,
    add_partition_files,
    migrate_partition_files,
    overwrite_properties,
    remove_damaged_cleans,
)
from lakewarden.engine.services.table_version import (
    VersionChanged,
    change_version,
    wants_upgrade,
)
from lakewarden.engine.snapshot import Loaded, Snapshot, load_table, retrying_view
from lakewarden.engine.spark.service_tasks import SparkExecutor
from lakewarden.engine.table.versions import NEWEST, OLDEST, stands_in_the_way
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write.metadata_table import (
    ENABLED,
    default_partitions,
    has_partitioned_index,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableMetadata:
    """The metadata table of a table; `Table` says which."""

    def _state(self) -> Snapshot:
        raise NotImplementedError

    def _context_factory(self, options: Options = None) -> Context:
        raise NotImplementedError

    def timeline(self) -> ActiveTimeline:
        """The active timeline."""
        return self._state().timeline.active

    def history(self) -> History:
        """The details of instants, active and archived."""
        state = self._state()
        return History(state.storage, state.timeline)

    def partitions(self) -> tuple[str, ...]:
        """The partition paths; a table without partitions has the one path ""."""
        return retrying_view(
            self._state, lambda state: state.source(use_metadata=True).partitions()
        )

    def file_slices(
        self, partition: str | None = None, as_of: Time | None = None, *, use_metadata: bool = True
    ) -> Listed[FileSlice]:
        """The file slices that a snapshot query reads."""
        partitions = None if partition is None else (partition,)
        return Listed(
            retrying_view(
                self._state,
                lambda state: slices_as_of(state, partitions, as_of, use_metadata=use_metadata),
            )
        )

    def retention(self) -> Retention:
        """How far back time travel, changes and restore reach, and which instant limits them."""
        return retrying_view(self._state, retention)

    def indexes(self) -> Listed[IndexDefinition]:
        """The indexes and other partitions of the metadata table."""
        return Listed(self._state().definitions)

    def create_index(
        self,
        name: str,
        columns: Sequence[str] = (),
        index_type: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        column_options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        dry_run: bool = False,
    ) -> IndexBuilt:
        """Build an index on the existing rows, beside other writers.

        `options` are the index's options, and Hudi's settings by name. A build that was interrupted
        is resumed.
        """
        context, request = self._asked(name, columns, index_type, options, column_options)
        return create_index(context, request, if_not_exists=if_not_exists, dry_run=dry_run)

    def build_index(
        self,
        name: str,
        columns: Sequence[str] = (),
        index_type: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        op: str = "scheduleAndExecute",
        dry_run: bool = False,
    ) -> IndexBuilt:
        """Build an index in steps: `op` is schedule, execute, resume or scheduleAndExecute.

        From the schedule on, writes report to the index; it is used once it is executed. Resuming
        is executing: base files that are finished are kept.
        """
        context, request = self._asked(name, columns, index_type, options, None)
        return build_index(context, request, op, dry_run=dry_run)

    def run_indexing(
        self, instants: Sequence[str] | None = None, *, spark: "SparkSession | None" = None
    ) -> Listed[BuildDone]:
        """Carry out pending plans of index builds, ours or Java's.

        Without a choice these are all, but for those that others end meanwhile. With a session its
        workers read the table.
        """
        context = self._context_factory()
        workers = None if spark is None else SparkExecutor(spark, "indexing")
        if instants is None:
            return Listed(run_pending_builds(context, workers))
        return Listed(run_build(context, instant, workers) for instant in instants)

    def workers_for_builds(self, spark: "SparkSession | None") -> "SparkSession | None":
        """The session if Spark's workers pay for reading the table; None means threads."""
        if spark is None:
            return None
        slices = latest_file_slices(self._state(), None)
        read_bytes = sum(
            file.size_bytes for one in slices for file in (one.base_file, *one.log_files) if file
        )
        return spark if read_bytes >= self._context_factory().settings[SPARK_BYTES_MIN] else None

    def pending_indexing(self) -> tuple[str, ...]:
        """The instants of index builds that have not ended, oldest first."""
        return pending_indexing(self._state())

    def _asked(
        self,
        name: str,
        columns: Sequence[str],
        index_type: str | None,
        options: Mapping[str, str] | None,
        column_options: Mapping[str, str] | None,
    ) -> tuple[Context, IndexRequest]:
        settings, own = _divided(options or {})
        request = IndexRequest(
            name=name,
            index_type=index_type,
            columns=tuple(columns),
            options=own,
            column_options=column_options or {},
        )
        return self._context_factory(settings), request

    def refresh_index(self, name: str, *, dry_run: bool = False) -> IndexBuilt:
        """Rebuild an index from its definition."""
        return refresh_index(self._context_factory(), name, dry_run=dry_run)

    def drop_index(
        self, name: str, *, if_exists: bool = False, dry_run: bool = False
    ) -> IndexDropped:
        """Drop an index."""
        return drop_index(self._context_factory(), name, if_exists=if_exists, dry_run=dry_run)

    def set_index(
        self, index: str, options: Options = None, *, dry_run: bool = False, **keywords: object
    ) -> IndexSet:
        """Set the index that all writes use to look up keys, if the existing rows allow it.

        `index` is a value of `hoodie.index.type`; options say how many buckets a bucket index has,
        and what it hashes.
        """
        given = given_options(options, keywords)
        return set_index(self._context_factory({**given, INDEX_TYPE.key: index}), dry_run=dry_run)

    def change_version(self, version: int, *, dry_run: bool = False) -> VersionChanged:
        """Upgrade the table's format to version 8 or 9, or downgrade it to 8 or 6, at rest.

        Indexes that version 8 has in another format go; statistics are made anew in it. From and to
        version 6 the whole metadata table goes. Versions 8 and 9 get another one, with statistics.
        """
        context = self._context_factory()
        was_oldest = self._state().config.version == OLDEST and context.settings[ENABLED]
        changed = change_version(context, version, dry_run=dry_run)
        is_renamed = bool(self._state().history.versions)
        loses_statistics = COLUMN_STATS in changed.dropped and version > OLDEST
        if (
            (was_oldest or loses_statistics)
            and changed.is_changed
            and not dry_run
            and not is_renamed
        ):
            build_metadata_table(context, self._default_indexes(context), is_at_rest=True)
        return changed

    def _upgraded(self, context: Context, loaded: Loaded) -> Loaded:
        """What a table says after the change that a write asks for, if it does.

        It is upgraded, or one of version 6 loses the metadata table that the write does without.
        """
        if wants_upgrade(context.settings, loaded[0]):
            self.change_version(NEWEST)
        elif stands_in_the_way(loaded[0], context.storage) and not context.settings[ENABLED]:
            drop_metadata(context)
        else:
            return loaded
        return load_table(context.storage, context.memory)

    def repair_partition_files(
        self, *, migrates: bool = False, dry_run: bool = False
    ) -> Listed[PartitionFile]:
        """Put back the files that make folders partitions; how each folder said so before.

        Or let all of them be files of the table's base format.
        """
        if migrates:
            return Listed(migrate_partition_files(self._context_factory(), dry_run=dry_run))
        return Listed(add_partition_files(self._state(), dry_run=dry_run))

    def repair_properties(
        self, properties: Mapping[str, str], *, dry_run: bool = False
    ) -> Listed[PropertyChange]:
        """Replace the table's properties; refused where they would describe other rows or files."""
        return Listed(overwrite_properties(self._context_factory(), properties, dry_run=dry_run))

    def repair_cleans(self, *, dry_run: bool = False) -> tuple[tuple[str, bool], ...]:
        """Remove pending cleans whose plans are damaged; each with whether it goes."""
        return remove_damaged_cleans(self._context_factory(), dry_run=dry_run)

    def set_settings(self, settings: Mapping[str, str], removed: Sequence[str] = ()) -> None:
        """Keep settings with the table for all of its writers; `removed` ones hold no more."""
        context = self._context_factory()
        keep_settings(context, self._state().config, settings, removed)

    def create_metadata_table(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Create missing default partitions of the metadata table; returns their names.

        Indexes are built beside writers.
        """
        context = self._context_factory()
        return build_metadata_table(context, self._default_indexes(context), dry_run=dry_run)

    def _default_indexes(self, context: Context) -> list[WantedIndex]:
        is_partitioned = has_partitioned_index(context.settings)
        return [
            WantedIndex(partition=one, is_partitioned=one == RECORD_INDEX and is_partitioned)
            for one in default_partitions(self._state().config, context.settings)
        ]

    def delete_metadata_table(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Delete the metadata table with all indexes; returns its partitions."""
        return drop_metadata(self._context_factory(), dry_run=dry_run)

    def validate(self, checks: Sequence[str] = ()) -> Listed[CheckResult]:
        """Run some or all checks on the table; changes nothing."""
        return Listed(validate(self._state(), self._context_factory().ports.executor, checks))

    def repair_deduplicate(
        self,
        partitions: Sequence[str] | None = None,
        options: Options = None,
        *,
        dry_run: bool = False,
    ) -> Deduplicated:
        """Delete all but the newest row of each repeated key, in some or all partitions.

        The result lists the rows, and why one stays. A dry run changes nothing.
        """
        return repair_deduplicate(self._context_factory(options), partitions, dry_run=dry_run)

    def index_states(self) -> Listed[IndexView]:
        """All indexes, also planned ones: how far each is, and whether reads believe it."""
        return Listed(index_views(self._context_factory()))

    def metadata_listing(self) -> FileSource:
        """The partitions and files that the metadata table lists."""
        return metadata_listing(self._state())

    def metadata_sizes(self) -> Listed[MetadataSizes]:
        """The size of each partition of the metadata table."""
        return retrying_view(self._state, lambda state: Listed(metadata_sizes(state)))

    def compared_files(self) -> Listed[ComparedFile]:
        """The files on storage, compared with those that the metadata table lists."""
        return retrying_view(self._state, lambda state: Listed(compare_files(state)))

    def column_statistics(
        self, partitions: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> Listed[FileColumn]:
        """The statistics of the files that a read sees."""
        return retrying_view(
            self._state, lambda state: Listed(file_statistics(state, partitions, columns))
        )

    def column_overlaps(
        self, partitions: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> Listed[Overlap]:
        """How far the base files of each partition overlap in each column."""
        return retrying_view(
            self._state, lambda state: Listed(overlaps(state, partitions, columns))
        )


def _divided(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings among the options of an index, and the rest."""
    settings = {name: text for name, text in options.items() if "." in name}
    return settings, {name: text for name, text in options.items() if name not in settings}
