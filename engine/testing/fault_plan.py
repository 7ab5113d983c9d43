"""Fault plans: which storage calls go wrong, and how; each plan is one line that replays it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from lakewarden.engine.kernel.errors import InvalidRequest


class FaultKind(StrEnum):
    """What happens to a call. Its effect is what it does to the files."""

    FAIL_BEFORE = "fail_before"
    """No effect; the caller gets an error."""
    FAIL_AFTER = "fail_after"
    """The effect takes place; the caller gets an error all the same."""
    TORN = "torn"
    """A part of the effect takes place: a prefix of the file, some of the folder; an error."""
    LOST_REQUEST = "lost_request"
    """No effect; a conditional call answers `Unknown`, anything else fails."""
    LOST_ANSWER = "lost_answer"
    """The effect takes place; a conditional call answers `Unknown`, anything else fails."""
    RETRIED = "retried"
    """The call is made twice, as a client does who missed the first answer; the second counts."""
    DELAYED = "delayed"
    """The clock moves on before the call."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault at one call, counted from 1; a fatal one ends the process there."""

    call: int
    kind: FaultKind
    is_fatal: bool = False
    delay_ms: int = 0

    def __str__(self) -> str:
        end = "!" if self.is_fatal else ""
        return f"{self.call}:{self.kind}{end}" + (f"+{self.delay_ms}ms" if self.delay_ms else "")


@dataclass(frozen=True, slots=True)
class StorageCall:
    """One call a storage got: its number, the operation, and the path it was about."""

    number: int
    operation: str
    path: str

    def __str__(self) -> str:
        return f"{self.number} {self.operation} {self.path}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All that shall go wrong; the seed decides where a write tears and how a listing is mixed."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    mixes_listings: bool = False

    def __str__(self) -> str:
        words = [f"seed={self.seed}"]
        if self.mixes_listings:
            words.append("mixed_listings")
        return " ".join(words + [str(fault) for fault in self.faults])

    def at(self, call: int) -> Fault | None:
        """The fault of a call."""
        return next((fault for fault in self.faults if fault.call == call), None)

    def chance(self, place: str) -> Random:
        """The source of every choice at a call or a folder: the same for the same plan."""
        return Random(f"{self.seed}:{place}")


_FAULT = re.compile(r"(\d+):([a-z_]+)(!?)(?:\+(\d+)ms)?")
_KINDS = {str(kind): kind for kind in FaultKind}
_TORN_OPERATIONS = ("put", "close", "create_exclusive", "delete_folder")
_EFFECTIVE_OPERATIONS = (*_TORN_OPERATIONS, "create_dated", "delete", "touch", "replace_if")


def parse_plan(line: str) -> FaultPlan:
    """The plan that prints as this line.

    >>> str(parse_plan("seed=7 mixed_listings 3:torn! 5:delayed+20ms"))
    'seed=7 mixed_listings 3:torn! 5:delayed+20ms'
    """
    faults: list[Fault] = []
    seed, mixes_listings = 0, False
    for word in line.split():
        match = _FAULT.fullmatch(word)
        if match and match[2] in _KINDS:
            kind = _KINDS[match[2]]
            faults.append(Fault(int(match[1]), kind, bool(match[3]), int(match[4] or 0)))
        elif word.startswith("seed=") and word[5:].isdecimal():
            seed = int(word[5:])
        elif word == "mixed_listings":
            mixes_listings = True
        else:
            raise InvalidRequest(
                "invalid_fault_plan",
                what=f"{word!r} is not a fault.",
                why=f"A fault is one of {', '.join(FaultKind)}, with its call.",
                now="Copy the line as a failed test has printed it.",
                line=line,
            )
    return FaultPlan(tuple(faults), seed, mixes_listings)


def drawn_plan(
    seed: int, *, calls: int, rate: float, kinds: Iterable[FaultKind] = FaultKind
) -> FaultPlan:
    """Faults drawn for about `rate` of the calls, delays up to a minute, and mixed listings."""
    choice = Random(seed)
    choices = tuple(kinds)
    faults = [
        Fault(call, kind, delay_ms=choice.randrange(60_000) if kind is FaultKind.DELAYED else 0)
        for call in range(1, calls + 1)
        if choice.random() < rate
        for kind in [choice.choice(choices)]
    ]
    return FaultPlan(tuple(faults), seed, mixes_listings=True)


def crash_plans(calls: Iterable[StorageCall], seed: int = 0) -> Iterator[FaultPlan]:
    """A plan for every way to die at one of these calls.

    A call without effect needs one death only; one that can be cut in two has three.
    """
    for call in calls:
        kinds = [FaultKind.FAIL_BEFORE]
        if call.operation in _EFFECTIVE_OPERATIONS:
            kinds.append(FaultKind.FAIL_AFTER)
        if call.operation in _TORN_OPERATIONS:
            kinds.append(FaultKind.TORN)
        for kind in kinds:
            yield FaultPlan((Fault(call.number, kind, is_fatal=True),), seed)
