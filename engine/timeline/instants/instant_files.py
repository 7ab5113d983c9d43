"""Creating the files of instants: each state is one file, made once and never changed."""

from lakewarden.engine.storage.port import Creation, Storage
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.instants.layouts import Layout


def create_instant(
    storage: Storage, layout: Layout, instant: Instant, content: bytes = b""
) -> Creation:
    """Create the file of an instant in its state, unless there is one.

    An empty file looks like everybody else's: who creates one and gets `Lost` may have lost to
    itself. A completed instant that has a ledger is published by `roll_forward` alone.
    """
    return storage.create_exclusive(layout.path(instant), content)
