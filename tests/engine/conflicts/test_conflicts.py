"""Conflicts: what stands against a write, and what does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from lakewarden.engine.conflicts.conflicts import (
    Conflicting,
    ConflictKind,
    ConflictStrategy,
    ObservedInstants,
    find_conflicts,
    strategy_of,
    write_conflict,
)
from lakewarden.engine.conflicts.touched_groups import TouchKind, planned_by, touched_by
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit, compaction, replace
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ReplaceCommitMetadata,
    RequestedReplace,
)
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.writer import archive
from lakewarden.engine.timeline.instants.instant import Action, Instant, Layout, State, layout_of
from lakewarden.engine.timeline.timeline import Timeline, load_active
from tests.golden_tables import GoldenTable

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)
LAYOUT_1 = layout_of({"hoodie.table.version": "6"}, local_zone=UTC)
A, B = FileGroupId("p", "a"), FileGroupId("p", "b")
SIMPLE = ConflictStrategy()
FileIds = Mapping[str, tuple[str, ...]]


def commit_of(written: FileIds, operation: str = "UPSERT") -> bytes:
    stats = {
        partition: tuple(WriteStat(file_id=one, partition_path=partition) for one in ids)
        for partition, ids in written.items()
    }
    return commit.encode(
        CommitMetadata(
            partition_to_write_stats=stats,
            operation_type=operation,
            compacted=operation in ("COMPACT", "LOG_COMPACT"),
        )
    )


def replace_of(replaced: FileIds) -> bytes:
    return replace.encode(ReplaceCommitMetadata(partition_to_replace_file_ids=replaced))


def compaction_plan_of(*keys: FileGroupId) -> bytes:
    operations = [
        CompactionOperation(
            base_instant_time="0", file_id=key.file_id, partition_path=key.partition
        )
        for key in keys
    ]
    return compaction.encode_plan(CompactionPlan(operations=tuple(operations)))


def clustering_plan_of(*keys: FileGroupId) -> bytes:
    slices = [ClusteringSlice(file_id=k.file_id, partition_path=k.partition) for k in keys]
    plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=tuple(slices)),))
    return replace.encode_plan(RequestedReplace(clustering_plan=plan))


@dataclass
class History:
    """A table on which one write is under way while other things happen."""

    layout: Layout = LAYOUT
    storage: Storage = field(default_factory=fresh_memory_storage)

    def __post_init__(self) -> None:
        self.happens("10_11.commit", commit_of({"p": ("a", "b")}))
        self.happens("50.commit.requested")
        self.begins()

    def begins(self) -> None:
        self.since = ObservedInstants.of(load_active(self.storage, self.layout))

    def happens(self, name: str, content: bytes = b"") -> None:
        if self.layout.version == 1:
            name = name.replace("_11", "").replace("_61", "")
        self.storage.put(f"{self.layout.folder}/{name}", content)

    def removed(self, name: str) -> None:
        assert self.storage.delete(f"{self.layout.folder}/{name}")

    def found(
        self,
        *mine: FileGroupId,
        strategy: ConflictStrategy = SIMPLE,
        appended: frozenset[FileGroupId] = frozenset(),
    ) -> list[tuple[str, str]]:
        """What conflicts: instant and file id."""
        found = self.conflicts(*mine, strategy=strategy, appended=appended)
        return [(one.instant, one.file_id) for one in found]

    def conflicts(
        self,
        *mine: FileGroupId,
        strategy: ConflictStrategy = SIMPLE,
        appended: frozenset[FileGroupId] = frozenset(),
    ) -> tuple[Conflicting, ...]:
        timeline = Timeline.load(self.storage, self.layout)
        return find_conflicts(frozenset(mine), self.since, timeline, strategy, appended=appended)


@pytest.fixture
def history() -> History:
    return History()


class TestCompletedWrites:
    def test_what_was_there_before_is_no_conflict(self, history: History) -> None:
        assert history.found(A, B) == []

    def test_the_same_file_group_is(self, history: History) -> None:
        history.happens("60_61.deltacommit", commit_of({"p": ("a",)}))
        assert history.found(A, B) == [("60", "a")]

    def test_another_file_group_is_not(self, history: History) -> None:
        history.happens("60_61.commit", commit_of({"p": ("c",), "q": ("a",)}))
        assert history.found(A, B) == []

    def test_a_replaced_file_group_is(self, history: History) -> None:
        history.happens("60_61.replacecommit", replace_of({"p": ("b",)}))
        assert history.found(A, B) == [("60", "b")]

    def test_one_requested_earlier_that_completed_later_is(self) -> None:
        history = History()
        history.happens("40.commit.requested")
        history.begins()
        history.happens("40_61.commit", commit_of({"p": ("a",)}))
        assert history.found(A) == [("40", "a")]

    def test_it_is_also_where_both_have_appended_logs(self) -> None:
        history = History()
        history.happens("40.deltacommit.requested")
        history.happens("42.clustering.requested", clustering_plan_of(B))
        history.begins()
        history.happens("40_61.deltacommit", commit_of({"p": ("a",)}))
        assert history.found(A, B, appended=frozenset({A, B})) == [("40", "a"), ("42", "b")]

    def test_they_come_in_the_order_of_completion(self, history: History) -> None:
        history.happens("60_71.commit", commit_of({"p": ("a",)}))
        history.happens("62_65.commit", commit_of({"p": ("a",)}))
        history.happens("70.compaction.requested", compaction_plan_of(A))
        assert history.found(A) == [("62", "a"), ("60", "a"), ("70", "a")]

    def test_a_write_that_touches_nothing_has_none(self, history: History) -> None:
        history.happens("60_61.commit", commit_of({"p": ("a",)}))
        assert history.found() == []

    def test_services_that_write_no_rows_are_none(self, history: History) -> None:
        for name in ("60_61.clean", "62_63.rollback", "64_65.savepoint", "66_67.indexing"):
            history.happens(name, b"never read")
        assert history.found(A) == []

    def test_other_pending_writes_are_none(self, history: History) -> None:
        history.happens("60.deltacommit.inflight", commit_of({"p": ("a",)}))
        history.happens("62.replacecommit.requested")
        assert history.found(A) == []


class TestCompactions:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("60_61.commit", commit_of({"p": ("a",)}, "COMPACT")),
            ("60.compaction.requested", compaction_plan_of(A)),
        ],
        ids=["completed", "pending"],
    )
    def test_logs_are_none_of_their_business(
        self, history: History, name: str, content: bytes
    ) -> None:
        history.happens(name, content)
        assert history.found(A, appended=frozenset({A})) == []
        assert history.found(A) == [("60", "a")]

    def test_in_version_6_logs_are(self) -> None:
        history = History(LAYOUT_1)
        history.happens("60.compaction.requested", compaction_plan_of(A))
        assert history.found(A, appended=frozenset({A})) == [("60", "a")]

    def test_an_inflight_one_is_known_by_its_plan(self, history: History) -> None:
        history.happens("60.compaction.requested", compaction_plan_of(A))
        history.happens("60.compaction.inflight")
        (found,) = history.conflicts(A, B)
        assert (found.action, found.kind) == (Action.COMPACTION, ConflictKind.PLANNED)

    def test_a_torn_plan_is_not_published(self, history: History) -> None:
        history.happens("60.compaction.requested", compaction_plan_of(A)[:-20])
        history.happens("62.compaction.inflight")
        assert history.found(A) == []

    def test_a_log_compaction_planned_before_leaves_logs_alone(self) -> None:
        history = History()
        history.happens("40.logcompaction.requested", compaction_plan_of(A))
        history.begins()
        assert history.found(A, appended=frozenset({A})) == []
        assert history.found(A) == [("40", "a")]

    def test_a_log_compaction_planned_meanwhile_would_come_behind_them(
        self, history: History
    ) -> None:
        history.happens("60.logcompaction.requested", compaction_plan_of(A))
        assert history.found(A, appended=frozenset({A})) == [("60", "a")]

    def test_a_log_compaction_completed_meanwhile_as_well(self, history: History) -> None:
        history.happens("60_61.deltacommit", commit_of({"p": ("a",)}, "LOG_COMPACT"))
        assert history.found(A, appended=frozenset({A})) == [("60", "a")]

    def test_one_planned_before_leaves_logs_alone_also_when_it_completes(self) -> None:
        history = History()
        history.happens("40.logcompaction.requested", compaction_plan_of(A))
        history.begins()
        history.happens("40_61.deltacommit", commit_of({"p": ("a",)}, "LOG_COMPACT"))
        assert history.found(A, appended=frozenset({A})) == []
        assert history.found(A) == [("40", "a")]


class TestClustering:
    @pytest.mark.parametrize("action", ["clustering", "replacecommit"])
    def test_a_file_group_about_to_be_clustered_is_a_conflict(
        self, history: History, action: str
    ) -> None:
        history.happens(f"60.{action}.requested", clustering_plan_of(A))
        history.happens(f"60.{action}.inflight")
        assert history.found(A, B, appended=frozenset({A, B})) == [("60", "a")]

    def test_also_when_it_was_planned_before(self) -> None:
        history = History()
        history.happens("40.clustering.requested", clustering_plan_of(A))
        history.begins()
        assert history.found(A) == [("40", "a")]

    def test_where_writers_are_preferred_plans_give_way(self, history: History) -> None:
        history.happens("60.clustering.requested", clustering_plan_of(A))
        history.happens("62_63.commit", commit_of({"p": ("b",)}))
        assert history.found(A, B, strategy=ConflictStrategy(prefers_writers=True)) == [("62", "b")]


class TestBuckets:
    def test_new_groups_of_one_bucket_are_in_conflict(self, history: History) -> None:
        mine = FileGroupId("p", "00000003-1111-0")
        history.happens("60_61.deltacommit", commit_of({"p": ("00000003-2222-0",)}))
        assert history.found(mine) == []
        by_bucket = ConflictStrategy(compares_buckets=True)
        assert history.found(mine, strategy=by_bucket) == [("60", mine.file_id)]

    def test_the_same_bucket_of_another_partition_is_not(self, history: History) -> None:
        history.happens("60_61.deltacommit", commit_of({"q": ("00000003-2222-0",)}))
        mine = FileGroupId("p", "00000003-1111-0")
        assert history.found(mine, strategy=ConflictStrategy(compares_buckets=True)) == []


class TestWhatIsGone:
    def test_a_write_rolled_back_meanwhile_puts_all_in_doubt(self) -> None:
        history = History()
        history.happens("20_21.commit", commit_of({"p": ("a",)}))
        history.begins()
        history.removed("20_21.commit")
        assert {one.kind for one in history.conflicts(A, B)} == {ConflictKind.TAKEN_BACK}
        assert history.found(A, B) == [("20", "a"), ("20", "b")]

    def test_a_savepoint_deleted_meanwhile_puts_nothing_in_doubt(self) -> None:
        history = History()
        history.happens("10_12.savepoint")
        history.begins()
        history.removed("10_12.savepoint")
        assert history.found(A, B) == []

    def test_a_write_archived_meanwhile_was_seen(self) -> None:
        history = History()
        history.happens("20_21.commit", commit_of({"p": ("a",)}))
        history.begins()
        history.removed("10_11.commit")
        done = Instant("10", Action.COMMIT, State.COMPLETED, "11")
        archive(history.storage, LAYOUT.history_folder, [ArchivedInstant(done)])
        assert history.found(A, B) == []

    def test_a_write_whose_rollback_is_under_way_puts_all_in_doubt(self) -> None:
        history = History()
        history.happens("20.inflight")
        history.happens("20_21.commit", commit_of({"p": ("a",)}))
        history.begins()
        history.removed("20_21.commit")
        assert {one.kind for one in history.conflicts(A)} == {ConflictKind.TAKEN_BACK}

    def test_the_only_write_rolled_back_meanwhile_puts_all_in_doubt(self) -> None:
        history = History()
        history.begins()
        history.removed("10_11.commit")
        history.happens("50.commit.requested")
        assert history.found(A, B) == [("10", "a"), ("10", "b")]

    def test_a_failed_write_rolled_back_meanwhile_left_nothing(self) -> None:
        history = History()
        history.happens("20.commit.requested")
        history.begins()
        history.removed("20.commit.requested")
        assert history.found(A) == []

    def test_a_write_completed_and_archived_meanwhile_puts_all_in_doubt(self) -> None:
        history = History()
        history.happens("05.commit.requested")
        history.begins()
        history.removed("05.commit.requested")
        done = Instant("05", Action.COMMIT, State.COMPLETED, "55")
        archive(history.storage, LAYOUT.history_folder, [ArchivedInstant(done)])
        assert history.found(A) == [("05", "a")]


class TestTheError:
    def test_it_names_instant_action_partition_group_and_remedy(self, history: History) -> None:
        history.happens("60.clustering.requested", clustering_plan_of(A, B))
        error = write_conflict("50", history.conflicts(A, B))
        assert isinstance(error, Conflict)
        assert error.code == "write_conflict"
        assert (error.instant, error.action) == ("60", "clustering")
        for word in ("50", "clustering 60", "file group a", "'p'", "1 more", "cancel"):
            assert word in str(error)

    def test_a_completed_write_is_answered_by_writing_again(self, history: History) -> None:
        history.happens("60_61.commit", commit_of({"p": ("a",)}))
        error = write_conflict("50", history.conflicts(A))
        assert "hoodie.write.num.retries.on.conflict.failures" in error.now
        assert "commit 60 completed after" in error.why
        assert " more" not in error.what

    def test_a_broken_commit_is_not_passed_over(self, history: History) -> None:
        history.happens("60_61.commit", b"broken")
        with pytest.raises(CorruptTable):
            history.found(A)


class TestStrategies:
    @pytest.mark.parametrize(
        ("name", "strategy"),
        [
            ("", ConflictStrategy()),
            ("PreferWriterConflictResolutionStrategy", ConflictStrategy(prefers_writers=True)),
            ("prefer_writer", ConflictStrategy(prefers_writers=True)),
            (
                "org.apache.hudi.client.transaction."
                "SimpleConcurrentFileWritesConflictResolutionStrategy",
                ConflictStrategy(),
            ),
            (
                "org.apache.hudi.client.transaction."
                "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
                ConflictStrategy(compares_buckets=True),
            ),
        ],
    )
    def test_names(self, name: str, strategy: ConflictStrategy) -> None:
        assert strategy_of(strategy_settings(name), has_bucket_index=False) == strategy

    def test_a_bucket_index_compares_buckets_whatever_is_set(self) -> None:
        for name in ("", "simple", "prefer_writer"):
            strategy = strategy_of(strategy_settings(name), has_bucket_index=True)
            assert strategy.compares_buckets

    def test_others_are_refused_by_name(self) -> None:
        with pytest.raises(InvalidRequest, match=r"com\.example\.Own") as caught:
            strategy_of(strategy_settings("com.example.Own"), has_bucket_index=False)
        assert caught.value.code == "unsupported_conflict_strategy"


def strategy_settings(name: str) -> Settings:
    return Settings.of(arguments={"hoodie.write.lock.conflict.resolution.strategy": name})


class TestTablesByJava:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("mor_compaction_requested", TouchKind.COMPACTION),
            ("mor_compaction_inflight", TouchKind.COMPACTION),
            ("mor_log_compaction_requested", TouchKind.LOG_COMPACTION),
            ("mor_clustering_requested", TouchKind.CLUSTERING),
        ],
    )
    def test_plans_name_file_groups_of_the_table(
        self, golden: GoldenTable, name: str, kind: TouchKind
    ) -> None:
        storage = open_storage(Location(str(golden(name))))
        active = load_active(storage, layout_in(storage))
        planned = [planned_by(active, instant) for instant in active.pending()]
        (touched,) = [one for one in planned if one.keys]
        assert touched.kind is kind
        assert all(has_files(storage, key) for key in touched.keys)

    @pytest.mark.parametrize(
        ("name", "kinds"),
        [
            ("mor_compaction_completed", {TouchKind.WRITE, TouchKind.COMPACTION}),
            ("mor_log_compaction_completed", {TouchKind.WRITE, TouchKind.LOG_COMPACTION}),
            ("mor_clustering_completed", {TouchKind.WRITE}),
            ("cow_clustering_completed", {TouchKind.WRITE}),
        ],
    )
    def test_completed_writes_name_file_groups_of_the_table(
        self, golden: GoldenTable, name: str, kinds: set[TouchKind]
    ) -> None:
        storage = open_storage(Location(str(golden(name))))
        active = load_active(storage, layout_in(storage))
        touched = [touched_by(active, instant) for instant in active.completed()]
        assert {one.kind for one in touched} == kinds
        assert all(has_files(storage, key) for one in touched for key in one.keys)


def layout_in(storage: Storage) -> Layout:
    properties = storage.read(".hoodie/hoodie.properties")
    return layout_of(parse_properties(properties, "hoodie.properties"), local_zone=UTC)


def has_files(storage: Storage, key: FileGroupId) -> bool:
    names = [entry.name.removeprefix(".") for entry in storage.list(key.partition).files]
    return any(name.startswith(f"{key.file_id}_") for name in names)
