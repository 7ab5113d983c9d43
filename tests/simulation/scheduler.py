"""The scheduler of a simulation: several actors of which one runs at a time, drawn from a seed.

An actor is a process: a thread that does the work, and repetitions (its heartbeats) that run at
their
time while it is neither paused nor dead. Every storage call has a turn before it and one after it.
At a turn somebody else may go on, or the actor is stopped for a while, and time passes.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Defect, LakewardenError

DEADLOCK_SECONDS = 600
HOP_MS = 25_000
# Shorter than the time after which late files are swept: longer pauses are not promised anything.
PAUSE_MAX_MS = 1_500_000
STEPS_MAX = 20_000


class Killed(BaseException):
    """The process ended here: no handler of errors sees it, and no later call gets through."""


class Over(BaseException):
    """The run has ended: a promise was broken, and whatever still goes on is of no interest."""


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True, slots=True)
class Chances:
    """How likely something befalls an actor at a turn or a call, and how often in a run."""

    kill: float = 0.004
    pause: float = 0.012
    fault: float = 0.006
    pauses_max: int = 4
    kills_max: int = 2
    faults_max: int = 3
    # For so many steps, as drawn.
    pause_steps: tuple[int, ...] = (5, 40, 150, 600)
    # Who stands still most of the times that it has just looked at the timeline.
    ponders: str = ""


CALM = Chances(0, 0, 0)
PONDERING = 0.6


@dataclass(frozen=True, slots=True)
class Step:
    """One call, as the trace tells it."""

    number: int
    at_ms: int
    actor: str
    operation: str
    path: str
    note: str = ""

    def __str__(self) -> str:
        end = f"  [{self.note}]" if self.note else ""
        return (
            f"{self.number:5d} {self.at_ms:>8d} {self.actor:<12s} {self.operation} {self.path}{end}"
        )


@dataclass(slots=True)
class Counts:
    """What has happened in one run, or in many."""

    runs: int = 0
    steps: int = 0
    switches: int = 0
    pauses: int = 0
    kills: int = 0
    faults: int = 0
    heartbeats: int = 0

    def add(self, other: "Counts") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Repeated:
    """A repetition of an actor, run by the scheduler when it is due."""

    def __init__(self, work: Callable[[], None], every_ms: int, now_ms: int) -> None:
        self.work = work
        self.every_ms = every_ms
        self.due_ms = now_ms + every_ms
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


@dataclass(eq=False)
class Actor:
    """One process of the simulation."""

    name: str
    number: int
    work: Callable[[], object]
    answer: object = None
    is_dead: bool = False
    is_done: bool = False
    died_ms: int = 0
    # Asleep until that moment; the heartbeats go on.
    wakes_ms: int = 0
    # Stopped until that step, with all that belongs to it, and for so long at most.
    paused_until: int = 0
    resumes_ms: int = 0
    # Whether its last call has read the timeline.
    has_looked: bool = False
    repeated: list[Repeated] = field(default_factory=list)
    thread: threading.Thread | None = None
    gate: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.gate.acquire()


class Scheduler:
    """Whose turn it is, and what time it is."""

    def __init__(self, seed: str, chances: Chances) -> None:
        self.chance = Random(seed)
        self.clock = ManualClock()
        self.counts = Counts(runs=1)
        self.trace: list[Step] = []
        self.violation: BaseException | None = None
        self.is_beating = False
        # From the end of the run: nobody is disturbed any more.
        self.chances = chances
        self._start_ms = self.clock.now_ms()
        self._actors: list[Actor] = []
        self._step = 0
        self._over = threading.Lock()
        # How often the running actor is kept running: from always another one to long stretches.
        self._staying = self.chance.choice((0.0, 0.5, 0.8, 0.95))

    @property
    def steps(self) -> int:
        """How many steps have been made so far."""
        return self._step

    def join(self, name: str, work: Callable[[], object]) -> Actor:
        actor = Actor(name, len(self._actors) + 1, work)
        self._actors.append(actor)
        return actor

    def run(self) -> None:
        """Let all actors come to their end; raises what was broken."""
        fresh = [actor for actor in self._actors if not actor.is_done]
        self._over.acquire()
        for actor in fresh:
            actor.thread = threading.Thread(target=self._body, args=(actor,), daemon=True)
            actor.thread.start()
        self._next(None).gate.release()
        if not self._over.acquire(timeout=DEADLOCK_SECONDS):
            raise Violation("The run does not come to an end.")
        self._over.release()
        if self.violation is not None:
            raise self.violation

    def turn(self, actor: Actor) -> None:
        """Let others go on; returns when it is the actor's turn again."""
        if self.violation is not None:
            raise Over
        # With threads of its own an actor's calls would have no order.
        assert threading.current_thread() is actor.thread, actor.name
        self._step += 1
        self.counts.steps += 1
        self.clock.advance(1)
        if self._step > STEPS_MAX:
            self.broken(Violation(f"The run has not ended after {STEPS_MAX} steps."))
        ponders = actor.has_looked and actor.name == self.chances.ponders
        actor.has_looked = False
        if self.chance.random() < (PONDERING if ponders else self.chances.pause):
            self._pause(actor)
        chosen = self._next(actor)
        if chosen is not actor:
            self.counts.switches += 1
            chosen.gate.release()
            actor.gate.acquire()
        if self.violation is not None:
            raise Over
        if actor.is_dead:
            raise Killed

    def sleep(self, actor: Actor, seconds: float) -> None:
        """The actor waits, and its heartbeats go on."""
        actor.wakes_ms = self.clock.now_ms() + max(1, round(seconds * 1000))
        self.turn(actor)

    def kill(self, actor: Actor) -> None:
        """End a process at the call it is making."""
        self.counts.kills += 1
        actor.is_dead = True
        actor.died_ms = self.clock.now_ms()
        raise Killed

    def draws_kill(self) -> bool:
        return self._draws(self.chances.kill, self.counts.kills, self.chances.kills_max)

    def draws_fault(self) -> bool:
        return self._draws(self.chances.fault, self.counts.faults, self.chances.faults_max)

    def note(self, actor: Actor, operation: str, path: str, note: str = "") -> None:
        at_ms = self.clock.now_ms() - self._start_ms
        self.trace.append(Step(self._step, at_ms, actor.name, operation, path, note))

    def broken(self, violation: BaseException) -> None:
        """End the run: a promise was broken at this very step."""
        if self.violation is None:
            self.violation = violation
        raise Over

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with the heartbeats of all who are not stopped."""
        end = self.clock.now_ms() + milliseconds
        while (left := end - self.clock.now_ms()) > 0:
            self.clock.advance(min(left, HOP_MS))
            self._heartbeat()

    def is_dead(self, number: int) -> bool:
        """Whether the process of that number was killed."""
        return any(actor.number == number and actor.is_dead for actor in self._actors)

    def _draws(self, chance: float, so_far: int, at_most: int) -> bool:
        return so_far < at_most and self.chance.random() < chance

    def _body(self, actor: Actor) -> None:
        actor.gate.acquire()
        try:
            if self.violation is None:
                actor.answer = actor.work()
        except (Killed, Over):
            pass
        except Defect as error:
            self.violation = self.violation or error
        except LakewardenError as error:
            actor.answer = error
        except BaseException as error:
            self.violation = self.violation or error
        actor.is_done = True
        if all(other.is_done for other in self._actors):
            self._over.release()
        else:
            self._next(None).gate.release()

    def _pause(self, actor: Actor) -> None:
        """Stop a process: for some steps only, or until the others take it for dead."""
        if self.counts.pauses >= self.chances.pauses_max:
            return
        self.counts.pauses += 1
        actor.paused_until = self._step + self.chance.choice(self.chances.pause_steps)
        actor.resumes_ms = self.clock.now_ms() + PAUSE_MAX_MS
        if self.chance.random() < 0.7:
            self.advance(self.chance.randrange(30_000, 400_000))

    def _next(self, current: Actor | None) -> Actor:
        if self.violation is not None:
            return next(actor for actor in self._actors if not actor.is_done)
        now = self.clock.now_ms()
        ready = [
            actor
            for actor in self._actors
            if not actor.is_done and actor.wakes_ms <= now and not self._is_paused(actor)
        ]
        if not ready:
            return self._awakened()
        if current in ready and self.chance.random() < self._staying:
            return current
        return ready[0] if len(ready) == 1 else self.chance.choice(ready)

    def _awakened(self) -> Actor:
        """Nobody can go on, so time passes until somebody can."""
        left = [actor for actor in self._actors if not actor.is_done]
        asleep = [actor for actor in left if not self._is_paused(actor)]
        if not asleep:
            first = min(left, key=lambda actor: (actor.paused_until, actor.number))
            first.paused_until = 0
            asleep = [first]
        first = min(asleep, key=lambda actor: (actor.wakes_ms, actor.number))
        self.advance(first.wakes_ms - self.clock.now_ms())
        return first

    def _is_paused(self, actor: Actor) -> bool:
        return actor.paused_until > self._step and self.clock.now_ms() < actor.resumes_ms

    def _heartbeat(self) -> None:
        """Run what is due. A heartbeat is one step: nobody is switched to in its middle."""
        if self.is_beating or self.violation is not None:
            return
        now = self.clock.now_ms()
        for actor in self._actors:
            if actor.is_dead or actor.is_done or self._is_paused(actor):
                continue
            actor.repeated = [one for one in actor.repeated if not one.is_stopped]
            for one in actor.repeated:
                if one.due_ms <= now:
                    one.due_ms = now + one.every_ms
                    self.counts.heartbeats += 1
                    self.is_beating = True
                    try:
                        one.work()
                    finally:
                        self.is_beating = False


class ScheduledRun:
    """A run whose scheduler draws for it, and writes down what happens."""

    scheduler: Scheduler

    @property
    def chance(self) -> Random:
        return self.scheduler.chance

    @property
    def trace(self) -> list[Step]:
        return self.scheduler.trace


class ActorClock:
    """The one clock of all, on which an actor sleeps while the others go on.

    Clocks of machines differ: an actor's may be ahead of the one clock, or behind it.
    """

    def __init__(self, scheduler: Scheduler, actor: Actor, skew_ms: int = 0) -> None:
        self._scheduler = scheduler
        self._actor = actor
        self._skew_ms = skew_ms

    def now_ms(self) -> int:
        return self._scheduler.clock.now_ms() + self._skew_ms

    def elapsed_seconds(self) -> float:
        return self._scheduler.clock.elapsed_seconds()

    def sleep(self, seconds: float) -> None:
        if self._actor.is_dead:
            raise Killed
        self._scheduler.sleep(self._actor, seconds)


class ActorBackground:
    """Repetitions that belong to an actor, and end with it."""

    def __init__(self, scheduler: Scheduler, actor: Actor) -> None:
        self._scheduler = scheduler
        self._actor = actor

    def repeat(self, work: Callable[[], None], *, every_seconds: float) -> Repeated:
        one = Repeated(work, round(every_seconds * 1000), self._scheduler.clock.now_ms())
        self._actor.repeated.append(one)
        return one

    def start(self, work: Callable[[], None]) -> None:
        work()
