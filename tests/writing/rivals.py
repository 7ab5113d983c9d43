"""Rivals: others who commit at a chosen moment of a write."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lakewarden.engine.kernel.events import Event

KEYS_FOUND = "write.find keys"
# The rows are made from what the table holds, and the write is not published yet.
PREPARED = "write.prepare"


@dataclass
class OnceFound:
    """Ears that let a rival act when a write has found its keys and made no file yet, or earlier.

    It acts in the first write, or in as many as are asked for.
    """

    rival: Callable[[], object]
    times: int = 1
    phase: str = KEYS_FOUND
    acted: int = field(default=0, init=False)

    def __call__(self, event: Event) -> None:
        if event.name == self.phase and self.acted < self.times:
            self.acted += 1
            self.rival()
