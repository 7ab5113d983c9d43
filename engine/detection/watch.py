"""The watch: a write looks before its first file, and again and again while it makes them."""

from lakewarden.engine.detection.giving_way import early_write_conflict
from lakewarden.engine.detection.rivals import Rival, RivalFinder
from lakewarden.engine.transaction.state.context import Context


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
