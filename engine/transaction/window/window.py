"""The incremental window: which partitions a new plan of a service has to look at.

It begins where the last completed plan of ours was drafted. That plan took what it found, or named
what it skipped; so what is written to since, what it names, and what cancelled plans have handed
back is all that a look at every partition could find.
"""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.kernel.settings import Setting, flag
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instants.layouts import FOLDER_KEEPER
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.plan_scope import plan_scope
from lakewarden.engine.transaction.state.service import Service
from lakewarden.engine.transaction.window.cancelled_partitions import (
    cancelled_partitions,
    heard_until,
)
from lakewarden.engine.transaction.window.touched_partitions import touched_since
from lakewarden.engine.transaction.window.window_metadata import WindowMetadata, window_metadata_in

INCREMENTAL: Setting[bool] = Setting(
    "hoodie.table.services.incremental.enabled",
    True,
    flag,
    (
        "Whether plans of compaction, log compaction and clustering check only partitions that "
        "changed since the last plan, or that it skipped"
    ),
)
WINDOW_SETTINGS: tuple[Setting[object], ...] = (INCREMENTAL,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The partitions to plan for, and where they come from."""

    # None means all partitions of the table.
    partitions: tuple[str, ...] | None
    # The requested time of the service's last completed plan: where the window begins.
    since: str | None = None
    # In a sentence: since when, or why all partitions are looked at.
    why: str
    # What is touched since, what earlier plans skipped, and what cancelled plans have left.
    touched: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    handed_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """A completed plan at which a window may begin."""

    instant: str
    account: WindowMetadata
    missing: tuple[str, ...]


def find_window(
    context: Context,
    snapshot: Snapshot,
    service: Service,
    rules: str = "",
    *,
    takes_own: bool = True,
) -> Window:
    """The window of a service at a moment; what it costs depends on what has changed.

    `rules` is what a planner goes by when it leaves out a file group for good, without naming its
    partition; a plan that went by others is none to begin at. `takes_own` says whether what the
    service itself has made may be work for it again.
    """
    if not context.settings[INCREMENTAL]:
        return _all(f"{INCREMENTAL.key} is off")
    try:
        start = _start(context, snapshot, service, rules)
        if isinstance(start, str):
            return _all(start)
        return _since(context, snapshot, service, start, takes_own=takes_own)
    except CorruptTable as error:
        return _all(f"the changes are not known. {error}".rstrip("."))


def heard_of(context: Context, snapshot: Snapshot) -> dict[Service, int | None]:
    """For each service until when its last completed plan has heard of what was cancelled."""
    return {service: _heard(context, snapshot, service) for service in Service}


def _since(
    context: Context, snapshot: Snapshot, service: Service, start: _Start, *, takes_own: bool
) -> Window:
    touched = touched_since(context, snapshot, service, start.instant, takes_own=takes_own)
    carried = tuple(sorted({*start.missing, *_skipped_since(snapshot, service, start.instant)}))
    back = cancelled_partitions(context, snapshot, service, start.instant)
    return Window(
        partitions=tuple(sorted({*touched, *carried, *back})),
        since=start.instant,
        why=(
            f"Since the {service.words} {start.instant}, partitions written to: "
            f"{len(touched)}, skipped by plans: {len(carried)}, returned by cancelled plans: "
            f"{len(back)}."
        ),
        touched=touched,
        carried=carried,
        handed_back=back,
    )


def _start(context: Context, snapshot: Snapshot, service: Service, rules: str) -> _Start | str:
    """The newest completed plan to begin at, or why there is none."""
    completed = [files for files in _plans(snapshot, service) if files.completed is not None]
    word, others = service.words, 0
    for files in reversed(completed):
        start = _start_at(snapshot, files)
        if start is None:
            others += 1
        elif start.account.rules == rules:
            return start if _is_whole(context, snapshot, start) else _archived_since(word, start)
    if others < len(completed):
        return f"the last {word} had other settings"
    if others:
        return f"no completed {word} plan records what it skipped; plans of other engines do not"
    if _has_archive(context, snapshot):
        return f"the last completed {word} is archived, if there was one"
    return f"no {word} has completed yet"


def _start_at(snapshot: Snapshot, files: InstantFiles) -> _Start | None:
    assert files.requested is not None
    content = snapshot.timeline.active.read(files.requested.instant)
    scope = plan_scope(files.started_as, content, files.requested.entry.path)
    account = window_metadata_in(scope.extra)
    if account is None:
        return None
    return _Start(files.instant.requested, account, scope.missing_partitions)


def _is_whole(context: Context, snapshot: Snapshot, start: _Start) -> bool:
    """Whether all that the plan does not know of is on the active timeline still.

    Instants are archived in the order in which they began. One that began before the plan may have
    completed after it, and then be archived before it.
    """
    first = snapshot.timeline.first_active
    is_reached = first is not None and first <= start.account.started
    return is_reached or not _has_archive(context, snapshot)


def _skipped_since(snapshot: Snapshot, service: Service, since: str) -> set[str]:
    """What plans of any engine skipped that were published since."""
    later = (files for files in _plans(snapshot, service) if files.instant.requested > since)
    return {
        partition for files in later for partition in scope_of(snapshot, files).missing_partitions
    }


def _plans(snapshot: Snapshot, service: Service) -> list[InstantFiles]:
    """The plans of a service on the active timeline, pending and completed, oldest first."""
    return [
        files
        for files in snapshot.timeline.active.files
        if files.started_as is service.action and files.requested is not None
    ]


def _heard(context: Context, snapshot: Snapshot, service: Service) -> int | None:
    try:
        for files in reversed(_plans(snapshot, service)):
            if files.completed is not None and (start := _start_at(snapshot, files)) is not None:
                return heard_until(context, snapshot, start.instant)
    except CorruptTable:
        # No window begins at a plan that is not readable, so the next one leaves nothing out.
        return None
    return None


def _has_archive(context: Context, snapshot: Snapshot) -> bool:
    files = context.storage.list(snapshot.layout.history_folder).files
    return any(file.name != FOLDER_KEEPER for file in files)


def _archived_since(word: str, start: _Start) -> str:
    return f"some writes that ran while the {word} {start.instant} was planned are archived"


def _all(why: str) -> Window:
    return Window(partitions=None, why=f"All partitions are checked, because {why}.")
