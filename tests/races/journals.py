"""Journals: what each process of a run has started and what it was answered, flushed line by line.

A journal outlives its process. Times are those of the machine's monotonic clock, so that what was
over before a read began is known for certain.
"""

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

Row = dict[str, object]
Entry = dict[str, Any]


class Answer(StrEnum):
    """What a writer knows of its operation."""

    DONE = "done"
    REFUSED = "refused"
    # The process died, or got an error that leaves it open.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Operation:
    """One write: the row that each key gets, or None for a key that is deleted."""

    name: str
    kind: str
    effects: Mapping[str, Row | None]
    began: float = -math.inf
    # The time at which it had taken effect, if it ever did.
    ended: float = math.inf
    answer: Answer = Answer.LOST

    @property
    def is_refused(self) -> bool:
        return self.answer is Answer.REFUSED

    def was_done(self, before: float) -> bool:
        return self.answer is Answer.DONE and self.ended < before


@dataclass(frozen=True, slots=True)
class Journal:
    """One process's file, to which only that process appends."""

    path: Path

    def note(self, **entry: object) -> None:
        """Append one line; it is on disk when this returns."""
        line = json.dumps({"at": time.monotonic(), **entry}) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def entries(self) -> Sequence[Entry]:
        return _whole_lines(self.path, 0)[0]


@dataclass(slots=True)
class Journals:
    """The operations in some journals, read on from where the last look ended."""

    paths: Sequence[Path]
    operations: dict[str, Operation] = field(default_factory=dict)
    _offsets: dict[Path, int] = field(default_factory=dict)
    # The operation of each journal that has not ended yet.
    _open: dict[Path, str] = field(default_factory=dict)

    def read_on(self) -> Mapping[str, Operation]:
        for path in self.paths:
            entries, self._offsets[path] = _whole_lines(path, self._offsets.get(path, 0))
            for entry in entries:
                self._take(path, entry)
        return self.operations

    def _take(self, path: Path, entry: Entry) -> None:
        """Every entry ends the operation before it: its process did nothing else until then."""
        before = self._open.pop(path, None)
        if before is not None:
            answer = Answer(entry.get("answer", Answer.LOST))
            one = self.operations[before]
            self.operations[before] = replace(one, ended=entry["at"], answer=answer)
        if "begins" in entry:
            one = Operation(entry["begins"], entry["kind"], entry["effects"], entry["at"])
            self.operations[one.name] = one
            self._open[path] = one.name


def _whole_lines(path: Path, offset: int) -> tuple[Sequence[Entry], int]:
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    return list(_parsed(whole)), offset + len(whole)


def _parsed(lines: bytes) -> Iterator[Entry]:
    for line in lines.splitlines():
        entry: Entry = json.loads(line)
        yield entry
