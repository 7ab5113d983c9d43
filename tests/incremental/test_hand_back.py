"""What keeps partitions from being forgotten: take it away, and histories show it."""

from collections.abc import Iterator
from dataclasses import replace

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, Drafted, PlanRequest, Reason
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context, Service
from tests.incremental.compaction_cases import CASE
from tests.incremental.histories import STEPS, History
from tests.incremental.planning_table import ToyTable

SEEDS = range(25)


class Forgetful:
    """Compaction, but its plans do not name what they leave out for some reasons."""

    service = Service.COMPACTION

    def __init__(self, *forgotten: Reason) -> None:
        self._forgotten = forgotten

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        drafted = COMPACTION.draft(context, snapshot, plan_request)
        if not isinstance(drafted, Draft):
            return drafted
        skipped = [one for one in drafted.skipped if one.comes_back]
        named = {one.partition for one in skipped if one.reason not in self._forgotten}
        missing = tuple(sorted(named))
        plan = compaction.decode_plan(drafted.content, "the draft")
        content = compaction.encode_plan(replace(plan, missing_schedule_partitions=missing))
        return replace(drafted, content=content, missing_partitions=missing)

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        return COMPACTION.work(context, attempt, plan)


def failures(*forgotten: Reason) -> Iterator[int]:
    """The histories in which something was missed."""
    case = replace(CASE, service=Forgetful(*forgotten))
    for seed in SEEDS:
        try:
            History(case, seed).run(STEPS)
        except AssertionError:
            yield seed


def test_partitions_that_a_limit_left_out_have_to_be_named() -> None:
    assert next(failures(Reason.OVER_LIMIT), None) is not None


def test_partitions_that_a_filter_left_out_have_to_be_named() -> None:
    assert next(failures(Reason.PARTITION_FILTERED), None) is not None


def test_what_cancelled_plans_held_is_handed_back_though_no_plan_has_named_it() -> None:
    assert list(failures(Reason.HELD_BY_PLAN)) == []


def compacted_after_a_cancel(*, has_ledger: bool) -> bool:
    """Whether a file group is compacted whose plan was cancelled after the next one was made."""
    table, service = ToyTable(), Forgetful(Reason.HELD_BY_PLAN)
    held, other = FileGroupId("p=a", "f1"), FileGroupId("p=b", "f2")
    table.insert(held, other)
    table.append(held)
    given_up = planned(table, service)
    table.append(other)
    table.carry_out(planned(table, service))
    cancel(table.context(), given_up, "not wanted", force=True)
    if not has_ledger:
        table.storage.delete_folder(f"{LEDGER_FOLDER}/{given_up}")
    scheduled = schedule(table.context(), service, PlanRequest())
    return isinstance(scheduled, Scheduled) and held in scheduled.draft.groups


def planned(table: ToyTable, service: Forgetful) -> str:
    scheduled = schedule(table.context(), service, PlanRequest())
    assert isinstance(scheduled, Scheduled)
    return scheduled.instant


def test_without_its_ledger_a_cancelled_plan_would_be_forgotten() -> None:
    assert compacted_after_a_cancel(has_ledger=True)
    assert not compacted_after_a_cancel(has_ledger=False)
