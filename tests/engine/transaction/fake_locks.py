"""Locks that keep nobody out, or get lost at a chosen question."""

from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.locks.providers.port import Acquired, Acquiring, Holder


class LosesItself:
    """A lock that is granted to everybody and found lost at the given question."""

    name = "a lock that gets lost"
    renew_every_seconds = None

    def __init__(self, lost_at: int) -> None:
        self._left = lost_at

    def try_acquire(self) -> Acquiring:
        return Acquired()

    def renew(self) -> bool:
        return True

    def is_held(self) -> bool:
        self._left -= 1
        return self._left != 0

    def release(self) -> None:
        return None

    def holder(self) -> Holder | None:
        return None


class NoLock:
    """A lock that everybody has at any time."""

    name = "no lock"
    renew_every_seconds = None

    def try_acquire(self) -> Acquiring:
        return Acquired()

    def renew(self) -> bool:
        return True

    def is_held(self) -> bool:
        return True

    def release(self) -> None:
        return None

    def holder(self) -> Holder | None:
        return None


PLAN = compaction.encode_plan(
    compaction.CompactionPlan(
        operations=(
            compaction.CompactionOperation(
                base_instant_time="1", file_id="f1", partition_path="p=a"
            ),
        )
    )
)
