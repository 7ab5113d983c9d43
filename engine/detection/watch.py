"""The watch: a write or a plan looks before its first file, and again while it makes them."""

from collections.abc import Callable
from dataclasses import replace

from lakewarden.engine.conflicts.touched_groups import planned_by
from lakewarden.engine.detection.rivals import Rival, RivalFinder, early_write_conflict
from lakewarden.engine.detection.strategies import detection_rules
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import assert_plan_stays
from lakewarden.engine.transaction.state.context import Context, load_for_writing, pending_ledgers
from lakewarden.engine.transaction.state.plan_scope import INGESTION, plan_scope


class Watch:
    """Looks for the rivals of one write; what it has found holds for all of its threads."""

    def __init__(self, context: Context, finder: RivalFinder) -> None:
        self._context = context
        self._finder = finder
        self._rival: Rival | None = None
        self._looks_next: float | None = None

    def give_way_before_announcing(self) -> None:
        """Step `write.look` of the transactional strategy: give way to all that have announced."""
        self._give_way_to(self._finder.find(has_announced=False))

    def give_way(self) -> None:
        """Step `write.look`: give way to those who stay."""
        self._give_way_to(self._finder.find())

    def begin(self) -> None:
        """From now on look again each period."""
        now = self._context.ports.clock.elapsed_seconds()
        self._looks_next = now + self._finder.rules.initial_delay_seconds

    def assert_unrivalled(self) -> None:
        """Step `work.look`: raise if the write has to give way; looks if it is time to."""
        if self._rival is None and self._looks_next is not None:
            now = self._context.ports.clock.elapsed_seconds()
            if now < self._looks_next:
                return
            # One thread looks, and the others work on.
            self._looks_next = now + self._finder.rules.period_seconds
            self.give_way()
        else:
            self._give_way_to(self._rival)

    def _give_way_to(self, rival: Rival | None) -> None:
        if rival is None:
            return
        self._rival = rival
        now_ms = self._context.now_ms()
        raise early_write_conflict(self._finder.own.instant, rival, now_ms)


class PlanWatch:
    """Has a cancellable plan give way to live writes as soon as they show, and not at its commit.

    A write that announces itself over a plan that is executed fences it. So the plan looks when it
    begins, and when it was fenced, which it learns with its claim; and as often as detection is set
    to, for writes of engines that fence no plan.
    """

    def __init__(self, context: Context, attempt: Attempt) -> None:
        self._context = context
        self._attempt = attempt
        self._rules = detection_rules(context.settings)
        self._fences = attempt.fences
        self._looked_at = context.ports.clock.elapsed_seconds()
        self._conflict: Conflict | None = None

    def begin(self, snapshot: Snapshot) -> None:
        """Look for the writes that had announced themselves before the plan was claimed."""
        if snapshot.timeline.active.pending(INGESTION):
            self._give_way(lambda: snapshot)

    def assert_unrivalled(self) -> None:
        """Step `work.look`: raise if the plan has to give way."""
        if self._conflict is not None:
            raise self._conflict
        now = self._context.ports.clock.elapsed_seconds()
        is_due = self._rules and now - self._looked_at >= self._rules.period_seconds
        if self._fences != self._attempt.fences or is_due:
            self._fences, self._looked_at = self._attempt.fences, now
            self._give_way(lambda: load_for_writing(self._context))

    def _give_way(self, load: Callable[[], Snapshot]) -> None:
        """What goes wrong in a look is passed over: the commit looks once more."""
        try:
            self._look_at(load())
        except Conflict as conflict:
            self._conflict = conflict
            raise
        except LakewardenError as error:
            figures = {"instant": self._attempt.instant, "reason": str(error)}
            self._context.ports.events(Event("early_look_failed", figures))

    def _look_at(self, snapshot: Snapshot) -> None:
        files = snapshot.pending(self._attempt.instant)
        if files is None or files.requested is None:
            # The claim tells who has ended it.
            return
        groups = planned_by(snapshot.timeline.active, files.instant).keys
        now = replace(snapshot, ledgers=pending_ledgers(self._context, snapshot))
        assert_plan_stays(self._context, now, self._attempt.instant, groups)


def watch_plan(context: Context, snapshot: Snapshot, attempt: Attempt, plan: bytes) -> None:
    """Have an attempt at a plan give way as its plan demands; an immutable one does not."""
    if plan_scope(attempt.action, plan, attempt.instant).is_cancellable:
        watch = PlanWatch(context, attempt)
        watch.begin(snapshot)
        attempt.watch_with(watch.assert_unrivalled)
