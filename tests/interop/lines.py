"""Requests and answers between two processes: one JSON object per line, one answer per request.

Judges run in a process of their own, because they need another Spark or another Arrow than we do.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).parents[2]


class Refused(Exception):
    """The other process could not answer; its text says why."""


class LineClient:
    """A started judge: `ask` sends one request and waits for its answer."""

    def __init__(
        self, command: Sequence[str | Path], *, environment: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        self._asked = 0
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                cwd=CHECKOUT,
                env=os.environ | environment,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._asked += 1
        request = {"command": command, "number": self._asked, **arguments}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._answer()
        # Whoever asked before may have run out of time, and left without the answer.
        while answer["number"] < self._asked:
            answer = self._answer()
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise RuntimeError(f"the judge ended with code {code}; its log is {self._log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(open_commands: Callable[[], Mapping[str, Callable[..., Any]]]) -> None:
    """Answer requests from standard input until it closes.

    Everything else that this process or a child of it prints goes to the error stream: the
    commands are opened only after standard output has been set aside for answers.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    commands = open_commands()
    for line in sys.stdin:
        print(json.dumps(_answer(commands, json.loads(line))), file=answers, flush=True)


def _answer(commands: Mapping[str, Callable[..., Any]], request: dict[str, Any]) -> dict[str, Any]:
    command, number = commands[request.pop("command")], request.pop("number")
    try:
        return {"number": number, "result": command(**request)}
    except Exception as error:  # whatever Java or Rust throws is an answer here
        said = " because of ".join(reasons(error))
        return {"number": number, "error": f"{type(error).__name__}: {said}"[:4000]}


def reasons(error: Exception) -> list[str]:
    """What Java threw and what led to it, or else the error itself."""
    cause: Any = getattr(error, "java_exception", None)
    found = [] if cause is not None else [str(error)]
    while cause is not None:
        found.append(cause.toString())
        cause = cause.getCause()
    return found
