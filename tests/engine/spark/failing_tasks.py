"""Tasks that fail in Spark's workers."""

import time

from lakewarden.engine.kernel.errors import Conflict


class Doomed:
    """Would sleep for long, if its attempt did not end soon after it has started."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def assert_mine(self) -> None:
        self._asked += 1
        if self._asked > 2:
            raise Conflict("cancelled", what="It was stopped.", why="So it is.", now="Go on.")
