"""The stage of a test: one table, its context and Java beside it."""

from pathlib import Path

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.context import Context
from tests.interop.agreement import Agreement
from tests.interop.java_writes import JavaWriter
from tests.interop.judges import JavaJudge
from tests.writing.model import Kind, Story, Write
from tests.writing.shapes import Shape, carry_out

# Later than all times of a story.
LATE = 1_000_000


class Stage:
    """A table that we and Java write to in turns, and what it has to hold."""

    def __init__(self, shape: Shape, java: JavaJudge, path: Path) -> None:
        self.table = shape.create(str(path))
        self.java = JavaWriter(java, path)
        self.agreement = Agreement(java, path)
        self.story = Story(11, shape.model(), kinds=("upsert", "delete"))
        storage, ports, settings = open_storage(Location(str(path))), Ports(), Settings()
        self.context = Context(storage, open_lock(storage, settings, ports), ports, settings)

    def write(self, *kinds: Kind) -> None:
        for kind in kinds:
            write = self.story.write(kind)
            self.story.model.apply(write)
            carry_out(self.table, write)

    def java_writes(self) -> None:
        """New versions of rows that are there, which go to logs."""
        newer = [row | {"ts": LATE, "name": "late"} for row in self.story.model.rows.values()]
        write = Write("upsert", tuple(newer[::2]))
        self.story.model.apply(write)
        self.java.carry_out(write)

    def agree(self, after: str) -> None:
        self.agreement.check(self.story.model.contents(), after)

    def logs(self) -> int:
        return sum(len(slice_.log_files) for slice_ in self.table.file_slices())
