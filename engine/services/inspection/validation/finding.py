"""Findings: what a check of a table has come to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot


class CheckVerdict(StrEnum):
    """How a check came out, or one thing that it looked at."""

    OK = "ok"
    FAILED = "failed"
    # The table has nothing of what is checked.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a check says; of what is sound it says one thing in all."""

    verdict: CheckVerdict
    detail: str
    partition: str | None = None
    # A file, an instant, a key: what it is about.
    object: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The table that is checked, and the reader of its files."""

    state: Snapshot
    executor: Executor = field(repr=False)


Check = Callable[[CheckedTable], Iterator[Finding]]


def ok(detail: str) -> Finding:
    return Finding(verdict=CheckVerdict.OK, detail=detail)


def skipped(why: str) -> Finding:
    return Finding(verdict=CheckVerdict.SKIPPED, detail=why)


def failed(detail: str, *, about: str, partition: str | None = None) -> Finding:
    return Finding(verdict=CheckVerdict.FAILED, detail=detail, partition=partition, object=about)
