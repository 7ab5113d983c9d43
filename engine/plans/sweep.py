"""Sweeps: late removal of what a paused attempt may still write after its rollback.

A rollback leaves an entry that comes due after the longest pause that is tolerated. Whoever finds
it due looks once more for files that carry the instant, and removes them.
"""

import re
from dataclasses import dataclass

from lakewarden.engine.formats.payloads.binding import value_of
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.markers import read_markers
from lakewarden.engine.plans.settings import SWEEP_DELAY_SECONDS
from lakewarden.engine.plans.traces import clear_traces
from lakewarden.engine.plans.written_files import remove_written, written_in
from lakewarden.engine.timeline.documents import PRIVATE_FOLDER, format_document, parse_document
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.state import LedgerEnd

SWEEPS_FOLDER = f"{PRIVATE_FOLDER}/sweeps"

_KIND = "sweep"
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """When to look again for files of an instant, and in which partitions at least."""

    instant: str
    due_ms: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Swept:
    """An instant that was looked at again, and how many late files it had left."""

    instant: str
    files_deleted: int


def sweep_path(due_ms: int, instant: str) -> str:
    return f"{SWEEPS_FOLDER}/{due_ms}.{instant}.json"


def schedule_sweep(context: Context, instant: str, partitions: tuple[str, ...]) -> None:
    """Have an instant looked at again, once no paused attempt at it can be alive any more."""
    due_ms = context.now_ms() + context.settings[SWEEP_DELAY_SECONDS] * 1000
    entry = Sweep(instant=instant, due_ms=due_ms, partitions=partitions)
    context.storage.put(sweep_path(due_ms, instant), format_document(_KIND, entry))


def sweep(context: Context) -> tuple[Swept, ...]:
    """Remove late files of every instant whose sweep is due; one listing when none is."""
    swept = []
    for file in context.storage.list(SWEEPS_FOLDER).files:
        match = _NAME.fullmatch(file.name)
        if match and int(match[1]) <= context.now_ms():
            swept.append(Swept(match[2], _swept(context, file.path, match[2])))
            context.storage.delete(file.path)
    return tuple(swept)


def _swept(context: Context, path: str, instant: str) -> int:
    ledger = read_ledger(context.storage, instant)
    if ledger.ends_in is not LedgerEnd.CANCELLED:
        # Law 1: without that end nobody touches its files; the entry means nothing.
        return 0
    late = {file.partition for file in read_markers(context.storage, instant) or ()}
    places = late | set(_partitions(context, path))
    files = written_in(context.storage, instant, sorted(places))
    deleted = remove_written(context, ledger, ledger.next_number, files)
    clear_traces(context.storage, ledger)
    return deleted


def _partitions(context: Context, path: str) -> tuple[str, ...]:
    try:
        document = parse_document(context.storage.read(path), path, kinds=frozenset({_KIND}))
        return value_of(Sweep, document.record, path, str).partitions
    except CorruptTable:
        # Cut short by a crash, and whoever finished that rollback has left another one; or gone,
        # as somebody else was quicker.
        return ()
