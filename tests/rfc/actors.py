"""Actors: real processes that deal with a plan on a real disk, and may be stopped in the middle.

This module is run as a process that has imported everything and forks a child for each line it
reads, since starting Python anew takes longer than most of what an actor does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, cast

import pyarrow as pa

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Context
from tests.rfc.plans import KINDS

CHECKOUT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120
LOOK_EVERY_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class Part:
    """What an actor has to do; its answer goes to a file."""

    act: str
    table: str
    kind: str
    plan: str
    settings: dict[str, str]
    answer: str
    # Stop, by SIGSTOP, when the first data file has just been started.
    stops: bool = False


class Actor:
    """A process as its director sees it."""

    def __init__(self, pid: int, answer: Path) -> None:
        self._pid = pid
        self._answer = answer

    def until_stopped(self) -> Self:
        """Wait until it has stopped in the middle of its work."""
        until(self.is_stopped)
        return self

    def is_stopped(self) -> bool:
        return self._state() == "T"

    def gets(self, number: signal.Signals) -> Self:
        """Give it a signal; one that has stopped sees it when it goes on."""
        os.kill(self._pid, number)
        return self

    def goes_on(self) -> Self:
        return self.gets(signal.SIGCONT)

    def dies(self) -> None:
        self.gets(signal.SIGKILL)
        until(lambda: self._state() is None)

    def answers(self) -> str:
        """What has come of it: `completed`, `found completed`, the code of an error, or `died`."""
        until(lambda: self._state() is None)
        return self._answer.read_text(encoding="utf-8") if self._answer.exists() else "died"

    def _state(self) -> str | None:
        try:
            line = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        return line.rpartition(")")[2].split()[0]


class Stage:
    """The process that actors are forked from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._actors: list[Actor] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.rfc.actors"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )

    def enters(self, part: Part) -> Actor:
        """Start a process with a part of its own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(part)), file=self._process.stdin, flush=True)
        actor = Actor(int(self._process.stdout.readline()), Path(part.answer))
        self._actors.append(actor)
        return actor

    def answer_path(self) -> str:
        """Where the next actor is to leave its answer."""
        return str(self._folder / f"answer {len(self._actors)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # One that has stopped would never end by itself.
        for actor in self._actors:
            if actor.is_stopped():
                actor.dies()
        self._process.communicate()


class _Stopping:
    """A storage whose process stops itself when the first data file has just been started."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self._has_stopped = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create(self, path: str) -> pa.NativeFile:
        stream = self._inner.create(path)
        if not self._has_stopped and not path.startswith(".hoodie"):
            self._has_stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
        return stream


def _play(part: Part) -> str:
    kind = next(kind for kind in KINDS if kind.name == part.kind)
    storage = open_storage(Location(part.table))
    if part.stops:
        storage = cast(Storage, _Stopping(storage))
    given = {**part.settings, **kind.settings}
    settings = Settings.of(arguments={key.replace("__", "."): v for key, v in given.items()})
    ports = Ports()
    context = Context(storage, open_lock(storage, settings, ports), ports, settings)
    try:
        match part.act:
            case "execute":
                done = execute(context, kind.service, part.plan)
                return "found completed" if done.was_completed_before else "completed"
            case "cancel":
                return cancel(context, part.plan, "in the way", wait_seconds=30).outcome
            case _:
                clean(context)
                return "cleaned"
    except LakewardenError as error:
        return error.code
    except KeyboardInterrupt:
        return "interrupted"


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that others see to."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "an actor has not done what it was waited for"
        time.sleep(LOOK_EVERY_SECONDS)


def main() -> None:
    # Children that have ended need no one to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # A shell lets what it runs in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            part = Part(**json.loads(line))
            answer = Path(part.answer)
            beside = answer.with_suffix(".part")
            beside.write_text(_play(part), encoding="utf-8")
            beside.rename(answer)
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main()
