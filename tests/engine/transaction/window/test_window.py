"""The window: what a plan has to look at, and when that is everything."""

import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import restore, rollback
from lakewarden.engine.formats.instant_metadata.restore import RestoreMetadata
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata, RollbackPartition
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, create_instant
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Service, load_for_writing
from lakewarden.engine.transaction.window.window import INCREMENTAL, find_window
from tests.engine.transaction.window_cases import (
    SKEW_MS,
    A,
    B,
    C,
    content_of,
    plan,
    window,
    written,
)
from tests.incremental.planning_table import ToyTable


def planned_by_java(table: ToyTable, *keys: FileGroupId) -> str:
    table.clock.advance(100)
    content = content_of(Service.COMPACTION, keys)
    return publish(table.context(), Action.COMPACTION, content, claims=False).instant


def test_the_first_plan_looks_at_everything() -> None:
    found = window(written())
    assert found.partitions is None
    assert found.why == "All partitions are checked, because no compaction has completed yet."


def test_what_was_written_before_the_last_completed_plan_is_not_looked_at() -> None:
    table = written()
    done = plan(table, A, B, C)
    table.carry_out(done)
    table.append(B)
    found = window(table)
    assert (found.partitions, found.since, found.touched) == (("p=b",), done, ("p=b",))


def test_a_write_that_completed_after_the_plan_is_looked_at_though_it_began_before() -> None:
    table = written()
    early = table.begin_write(logs=[A])
    done = plan(table, B)
    table.end_write(early)
    table.carry_out(done)
    assert window(table).partitions == ("p=a",)


def test_the_last_plan_by_its_own_time_counts_whichever_completed_last() -> None:
    table = written()
    older, newer = plan(table, A), plan(table, B, missing=("p=a",))
    table.carry_out(newer)
    table.carry_out(older)
    assert window(table).since == newer


def test_a_pending_plan_is_none_to_begin_at() -> None:
    table = written()
    plan(table, A)
    assert window(table).partitions is None


def test_what_plans_left_out_is_carried() -> None:
    table = written()
    table.carry_out(plan(table, A, missing=("p=b",)))
    plan(table, B, missing=("p=c",))
    found = window(table)
    assert (found.partitions, found.carried) == (("p=b", "p=c"), ("p=b", "p=c"))


def test_a_cancelled_plan_hands_back_its_partitions_and_what_it_left_out() -> None:
    table = written()
    given_up = plan(table, A, missing=("p=c",))
    table.carry_out(plan(table, B))
    cancel(table.context(), given_up, "not wanted", force=True)
    assert window(table).handed_back == ("p=a", "p=c")


def test_a_plan_hands_back_to_plans_of_its_own_service_only() -> None:
    table = written()
    given_up = plan(table, A, service=Service.CLUSTERING)
    table.carry_out(plan(table, B))
    cancel(table.context(), given_up, "not wanted", force=True)
    assert window(table).handed_back == ()


def test_what_was_handed_back_long_before_the_last_plan_is_not_looked_at() -> None:
    table = written()
    cancel(table.context(), plan(table, A), "not wanted", force=True)
    table.clock.advance(SKEW_MS)
    table.carry_out(plan(table, B))
    assert window(table).partitions == ()


def test_a_plan_that_names_nothing_of_what_it_left_out_is_none_to_begin_at() -> None:
    table = written()
    ours = plan(table, A, missing=("p=c",))
    table.carry_out(ours)
    table.carry_out(planned_by_java(table, B))
    assert window(table).since == ours


def test_plans_of_others_alone_are_a_reason_to_look_at_everything() -> None:
    table = written()
    table.carry_out(planned_by_java(table, B))
    found = window(table)
    assert found.partitions is None
    assert "plans of other engines do not" in found.why


def test_a_plan_that_went_by_other_rules_is_none_to_begin_at() -> None:
    table = written()
    small = plan(table, A, rules="small")
    table.carry_out(small)
    table.carry_out(plan(table, B, rules="large"))
    assert window(table, rules="small").since == small
    found = window(table, rules="huge")
    assert found.partitions is None
    assert "had other settings" in found.why


def test_a_last_plan_that_is_archived_is_a_reason_to_look_at_everything() -> None:
    table = written()
    table.carry_out(plan(table, A, B, C))
    table.append(B)
    assert table.archive(keep=1) > 0
    found = window(table)
    assert found.partitions is None
    assert "archived" in found.why


def test_a_write_that_may_be_archived_though_the_plan_is_not_is_a_reason_too() -> None:
    table = written()
    early = table.begin_write(logs=[A])
    done = plan(table, B)
    table.end_write(early)
    table.carry_out(done)
    assert table.archive(keep=1) == 3
    found = window(table)
    assert found.partitions is None
    assert done in found.why


def test_nothing_is_lost_by_an_archive_of_what_the_plan_knew() -> None:
    table = written()
    table.append(A)
    table.carry_out(plan(table, A, B))
    table.append(C)
    assert table.archive(keep=3) == 2
    assert window(table).partitions == ("p=c",)


def test_incremental_planning_can_be_switched_off() -> None:
    table = written()
    table.carry_out(plan(table, A))
    found = window(table, hoodie__table__services__incremental__enabled="false")
    assert found.partitions is None
    assert INCREMENTAL.key in found.why


def test_a_plan_that_is_not_readable_is_a_reason_to_look_at_everything() -> None:
    table = written()
    done = plan(table, A)
    table.carry_out(done)
    table.storage.put(f".hoodie/timeline/{done}.compaction.requested", b"Obj\x01 and no more")
    found = window(table)
    assert found.partitions is None
    assert done in found.why


def test_a_compaction_gives_clusterings_work_and_compactions_none() -> None:
    table = written()
    table.carry_out(plan(table, C, service=Service.CLUSTERING))
    table.carry_out(plan(table, A))
    assert window(table).touched == ()
    assert window(table, Service.CLUSTERING).touched == ("p=a", "p=c")


@pytest.mark.parametrize("action", [Action.ROLLBACK, Action.RESTORE])
def test_what_was_taken_back_is_looked_at(action: Action) -> None:
    table = written()
    table.carry_out(plan(table, A))
    undone = RollbackMetadata(
        start_rollback_time="1",
        partition_metadata={"p=b": RollbackPartition(partition_path="p=b")},
    )
    restored = RestoreMetadata(start_restore_time="1", hoodie_restore_metadata={"1": (undone,)})
    is_rollback = action is Action.ROLLBACK
    content = rollback.encode(undone) if is_rollback else restore.encode(restored)
    layout = table.timeline().layout
    newest = table.timeline().newest_time() or ""
    done = Instant(newest + "1", action, State.COMPLETED, newest + "2")
    create_instant(table.storage, layout, done, content)
    assert window(table).touched == ("p=b",)


def test_what_it_costs_depends_on_what_has_changed() -> None:
    def calls(partitions: int) -> int:
        table = ToyTable()
        keys = [FileGroupId(f"p={number}", f"f{number}") for number in range(partitions)]
        table.insert(*keys)
        table.carry_out(plan(table, *keys[:2]))
        table.append(keys[0])
        watched = FaultyStorage(table.storage)
        context = table.writer(storage=lambda _: watched).context
        find_window(context, load_for_writing(context), Service.COMPACTION)
        return len(watched.calls)

    assert calls(3) == calls(60)
