"""Worlds for lock tests: a clock moved by hand, and processes that die when the test says so."""

from dataclasses import dataclass, field

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.run.executor import ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.run.processes import ProcessMark


class FakeProcesses:
    """One process as it sees itself and the others of its machine."""

    def __init__(self, world: "LockSetup", pid: int, machine: str) -> None:
        self._world = world
        self._mark = ProcessMark(f"host-{machine}", machine, pid, str(pid * 100))

    def mine(self) -> ProcessMark:
        return self._mark

    def is_gone(self, mark: ProcessMark) -> bool:
        return mark.machine == self._mark.machine and mark.pid in self._world.dead


@dataclass
class LockSetup:
    """What the processes of a test share."""

    clock: ManualClock = field(default_factory=ManualClock)
    background: ManualBackground = field(default_factory=ManualBackground)
    events: EventLog = field(default_factory=EventLog)
    dead: set[int] = field(default_factory=set)

    def ports(self, pid: int, machine: str = "one") -> Ports:
        """The ports of one process."""
        return Ports(
            clock=self.clock,
            ids=SeededIds(pid),
            background=self.background,
            events=self.events,
            processes=FakeProcesses(self, pid, machine),
        )
