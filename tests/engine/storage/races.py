"""Races for one file: two rivals start together, and exactly one of them may win."""

import base64
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lakewarden.engine.storage.port import Creation, Lost, Storage, Won

PAYLOAD_BYTES = 20_000
WORKER = Path(__file__).with_name("race_worker.py")
# Long enough for both workers to be woken, so that they go off at the same instant.
HEAD_START_NS = 3_000_000


def payload(rival: int, turn: int) -> bytes:
    """A content long enough to be seen torn, and different for each rival and turn."""
    return f"{rival}.{turn}.".encode() * (PAYLOAD_BYTES // 8)


def race_in_threads(rivals: Sequence[Storage], races: int) -> None:
    """Let each storage try from a thread of its own."""
    start = threading.Barrier(len(rivals))

    def run(rival: int) -> list[Creation]:
        answers = []
        for turn in range(races):
            start.wait()
            answers.append(rivals[rival].create_exclusive(f"race/{turn}", payload(rival, turn)))
        return answers

    with _frequent_switches(), ThreadPoolExecutor(len(rivals)) as threads:
        answers = list(threads.map(run, range(len(rivals))))
    for turn, pair in enumerate(zip(*answers, strict=True)):
        _assert_one_winner(rivals[0], turn, pair)


def race_in_processes(storage: Storage, races: int) -> None:
    """Let two processes try, each with a storage opened from the pickled location."""
    location = base64.b64encode(pickle.dumps(storage.location)).decode()
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), location, str(rival)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rival in (0, 1)
    ]
    try:
        for worker in workers:
            assert _ask(worker, "") == "ready"
        for turn in range(races):
            _assert_one_winner(storage, turn, _run_turn(workers, turn))
    finally:
        for worker in workers:
            worker.communicate()


def _run_turn(workers: Sequence["subprocess.Popen[str]"], turn: int) -> tuple[Creation, ...]:
    start_ns = time.monotonic_ns() + HEAD_START_NS
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{turn} {start_ns}\n")
        worker.stdin.flush()
    return tuple(pickle.loads(base64.b64decode(_ask(worker, None))) for worker in workers)


def _ask(worker: "subprocess.Popen[str]", line: str | None) -> str:
    assert worker.stdin is not None
    assert worker.stdout is not None
    if line is not None:
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()
    return worker.stdout.readline().strip()


def _assert_one_winner(storage: Storage, turn: int, answers: Sequence[Creation]) -> None:
    winners = [rival for rival, answer in enumerate(answers) if answer == Won()]
    assert len(winners) == 1, f"race {turn}: {len(winners)} winners"
    written = payload(winners[0], turn)
    assert storage.read(f"race/{turn}") == written
    losers = [answer for answer in answers if answer != Won()]
    assert losers == [Lost(written)] * (len(answers) - 1), f"race {turn}: a torn or foreign answer"


@contextmanager
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
