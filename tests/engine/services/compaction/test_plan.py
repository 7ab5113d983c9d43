"""Plans of compaction: what they take, what they leave out and why, what they say of it."""

import pytest

from lakewarden.engine.file_groups.planned_slices import slice_of
from lakewarden.engine.formats.instant_metadata.compaction import decode_plan, encode_plan
from lakewarden.engine.services.compaction.plan import Rules, plan_bytes, select_file_slices
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.compaction.strategies import UnBounded
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest, Reason, Refusal
from lakewarden.engine.services.planning.schedule import draft, schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.state.plan_scope import plan_scope
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)
from tests.golden_tables import GoldenTable


@pytest.fixture(scope="module")
def three() -> ServiceWorld:
    """Three partitions with a file group each; that of `a` has two logs, that of `b` one."""
    world = new_service_world(MOR, inserted(6, partitions="abc"))
    world.write(updated(2, ts=2, partitions="ab"), updated(1, ts=3, partitions="a"))
    return world


def drafted(
    world: ServiceWorld, plan_request: PlanRequest | None = None, **settings: object
) -> Draft:
    found = draft(world.context(**settings), COMPACTION, plan_request or PlanRequest())
    assert isinstance(found, Draft)
    return found


def partitions(plan: Draft) -> list[str]:
    return [one.partition_path or "" for one in decode_plan(plan.content, "").operations]


def reasons(plan: Draft | Refusal) -> dict[str, Reason]:
    return {one.partition: one.reason for one in plan.skipped}


def test_slices_with_logs_are_taken_and_the_others_named(three: ServiceWorld) -> None:
    plan = drafted(three)
    assert partitions(plan) == ["p=a", "p=b"]
    assert reasons(plan) == {"p=c": Reason.NO_LOGS}
    assert plan.missing_partitions == ()
    assert {key.partition for key in plan.groups} == {"p=a", "p=b"}
    assert plan.input_bytes == sum(s.size_bytes for s in three.slices() if s.log_files)


def test_the_plan_says_whether_it_may_be_cancelled(three: ServiceWorld) -> None:
    for asked, said in ((None, False), (True, True), (False, False)):
        content = drafted(three, PlanRequest(cancellable=asked)).content
        assert plan_scope(Action.COMPACTION, content, "").is_cancellable is said
    set_so = drafted(three, lakewarden__compaction__cancellable="true")
    assert plan_scope(Action.COMPACTION, set_so.content, "").is_cancellable


def test_limits_keep_groups_for_the_next_plan(three: ServiceWorld) -> None:
    one = drafted(three, PlanRequest(max_file_groups=1))
    assert partitions(one) == ["p=a"]
    assert reasons(one)["p=b"] is Reason.OVER_LIMIT
    assert one.missing_partitions == ("p=b",)
    assert decode_plan(one.content, "").missing_schedule_partitions == ("p=b",)
    small = min(s.size_bytes for s in three.slices() if s.log_files)
    by_bytes = drafted(three, PlanRequest(max_bytes=small))
    assert len(by_bytes.groups) == 1
    assert by_bytes.input_bytes <= small


def test_partitions_that_were_not_asked_for_come_back_if_they_have_logs(
    three: ServiceWorld,
) -> None:
    plan = drafted(three, PlanRequest(partitions=("p=b",)))
    assert partitions(plan) == ["p=b"]
    assert plan.missing_partitions == ("p=a",)
    assert reasons(plan)["p=a"] is Reason.PARTITION_FILTERED


def test_a_filter_by_path_leaves_partitions_for_later(three: ServiceWorld) -> None:
    plan = drafted(
        three,
        hoodie__compaction__strategy="PartitionRegexBased",
        hoodie__compaction__partition__path__regex="=a$",
    )
    assert partitions(plan) == ["p=a"]
    assert plan.missing_partitions == ("p=b",)


def test_groups_of_a_pending_plan_are_held_and_come_back() -> None:
    world = new_service_world(MOR, inserted(4), updated(4))
    first = schedule(world.context(), COMPACTION, PlanRequest(max_file_groups=1))
    assert first
    second = drafted(world)
    assert len(second.groups) == 1
    (held,) = [one for one in second.skipped if one.reason is Reason.HELD_BY_PLAN]
    assert held.held_by == first.instant
    assert second.missing_partitions == (held.partition,)
    assert schedule(world.context(), COMPACTION, PlanRequest())
    nothing = draft(world.context(), COMPACTION, PlanRequest())
    assert isinstance(nothing, Refusal)
    assert nothing.reason is Reason.HELD_BY_PLAN
    assert nothing.missing_partitions == ("p=a", "p=b")


def test_a_table_without_logs_gives_a_refusal_that_says_so() -> None:
    nothing = draft(new_service_world(MOR, inserted()).context(), COMPACTION, PlanRequest())
    assert isinstance(nothing, Refusal)
    assert nothing.reason is Reason.NOTHING_TO_DO
    assert not nothing


def test_a_copy_on_write_table_gives_a_refusal() -> None:
    nothing = draft(new_service_world(COW, inserted()).context(), COMPACTION, PlanRequest())
    assert isinstance(nothing, Refusal)
    assert nothing.reason is Reason.WRONG_TABLE_TYPE


def test_logs_of_a_write_that_has_not_completed_are_not_taken(three: ServiceWorld) -> None:
    world = three.copy()
    newest = world.snapshot().timeline.active.completed()[-1]
    before = {one.file_id: one.delta_file_paths for one in operations(drafted(world))}
    world.storage.delete(world.snapshot().timeline.active.path(newest))
    after = operations(drafted(world))
    taken = {name for one in after for name in one.delta_file_paths}
    assert taken == {
        name for names in before.values() for name in names if newest.requested not in name
    }


def operations(plan: Draft) -> tuple:
    return decode_plan(plan.content, "").operations


@pytest.mark.parametrize("name", ["mor_compaction_requested", "mor_log_compaction_completed"])
def test_a_plan_says_of_its_slices_what_java_says(golden: GoldenTable, name: str) -> None:
    storage = open_storage(Location(str(golden(name))))
    (path,) = [
        entry.path
        for entry in storage.list(".hoodie/timeline").files
        if entry.name.endswith("compaction.requested")
    ]
    theirs = decode_plan(storage.read(path), path)
    slices = [slice_of(storage, operation) for operation in theirs.operations]
    rules = Rules(strategy=UnBounded(), plan_request=PlanRequest(), new_base_bytes=120 << 20)
    ours = decode_plan(
        plan_bytes(select_file_slices(slices, rules).chosen, (), cancellable=False), ""
    )
    assert ours.operations == theirs.operations
    assert ours.extra_metadata == {"lakewarden.cancellable": "false"}
    fields = ("version", "missing_schedule_partitions")
    assert [getattr(ours, one) for one in fields] == [getattr(theirs, one) for one in fields]
    if "log" not in name:
        assert (ours.strategy, ours.preserve_hoodie_metadata) == (
            theirs.strategy,
            theirs.preserve_hoodie_metadata,
        )
    assert decode_plan(encode_plan(ours), "") == ours
