"""The ports an operation is given: time, chance, threads, processes and ears, all exchangeable."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lakewarden.engine.kernel.clock import Clock, SystemClock
from lakewarden.engine.kernel.events import EventSink, log_event
from lakewarden.engine.kernel.ids import Ids, SystemIds
from lakewarden.engine.run.executor import Background, Executor, LocalExecutor, ThreadBackground
from lakewarden.engine.run.processes import Processes, SystemProcesses, always_wanted


@dataclass(frozen=True, slots=True)
class Ports:
    """What an operation may use besides storage; the defaults are those of real life."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    executor: Executor = field(default_factory=LocalExecutor)
    background: Background = field(default_factory=ThreadBackground)
    events: EventSink = log_event
    processes: Processes = field(default_factory=SystemProcesses)
    # Raises when the caller has cancelled the work; any thread may call it.
    check_wanted: Callable[[], None] = always_wanted
