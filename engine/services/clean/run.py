"""Cleaning: files that no reader within the retention asks for any more are removed for good.

First what others have left is put in order: failed work, late files, cleans that were started.
Then a clean is drafted without the lock, published under it if it still holds, and carried out.

Leftovers: what instants that have ended leave behind, and the protocol leaves to a clean.

Markers and heartbeats go once their instant has ended; the ledger of one that was rolled back
goes when its sweep is done, and the next plan of its service has looked at its partitions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import clean as clean_payload
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.writing.builds import builds_with_notes, forget_notes
from lakewarden.engine.metadata.writing.writer import refuse_unheard, refuse_unmaintained
from lakewarden.engine.services.clean.draft import (
    CleanDraft,
    CleanRequest,
    content_of,
    draft_clean,
    frame_clean,
)
from lakewarden.engine.services.retention.clean_plan import Cleaned, FileHold, Finished
from lakewarden.engine.services.retention.file_removal import (
    FilesToDelete,
    execute_attempt,
    files_to_delete,
    finish_pending,
)
from lakewarden.engine.services.retention.settings import CleanRetention, retention_of
from lakewarden.engine.services.savepoint.run import repair_savepoints
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER, STANDARD_FOLDER
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import (
    LEDGER_FOLDER,
    instants_with_ledger,
    read_ledger,
)
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish_in, to_inflight
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import (
    Context,
    Service,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.live_attempt import is_recent
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER, delete_markers
from lakewarden.engine.transaction.state.pending_instants import describe_pending
from lakewarden.engine.transaction.sweep.sweep import SWEEPS_FOLDER, look_at_paths, sweep
from lakewarden.engine.transaction.window.window import heard_of, is_returned

_INSTANT = re.compile(r"[0-9]{14,}")
_SWEEP = re.compile(r"[0-9]+\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True)
class _Leftovers:
    """What is known of instants that have left something."""

    context: Context
    # Those that are to be looked at again: their markers and ledgers are still of use.
    swept_later: frozenset[str]
    # The instants of the timeline by time, and whether all that have it are completed.
    on_timeline: Mapping[str, bool]
    # Until when the last plan of each service has heard of what was cancelled.
    heard_ms: Mapping[Service, int | None]

    def has_ended(self, instant: str) -> bool:
        """Whether no attempt at an instant is alive, and its files need no cleanup any more."""
        if instant in self.swept_later:
            return False
        if instant in self.on_timeline:
            return self.on_timeline[instant]
        return _end_of(self.context, instant) is not LedgerEnd.CLAIM

    def may_be_forgotten(self, instant: str) -> bool:
        """Whether the ledger of an instant that was rolled back has served its purpose."""
        if instant in self.swept_later or instant in self.on_timeline:
            return False
        try:
            ledger = read_ledger(self.context.storage, instant)
        except CorruptTable as error:
            if error.code != "missing_file":
                raise
            # Another clean is just removing it.
            return False
        is_over = ledger.ends_in is LedgerEnd.CANCELLED
        return is_over and is_returned(ledger, self.heard_ms)


def delete_leftovers(context: Context) -> int:
    """Remove what ended instants have left; the number of those instants.

    The folders are listed before the timeline: an instant is published before it leaves anything
    but its first heartbeat, and recent heartbeats stay.
    """
    marked = [_last(folder) for folder in context.storage.list(TEMP_FOLDER).folders]
    heartbeats = [
        entry
        for folder in (BEATS_FOLDER, STANDARD_FOLDER)
        for entry in context.storage.list(folder).files
        if not is_recent(context, entry.modified_ms)
    ]
    with_ledger = instants_with_ledger(context.storage)
    with_notes = builds_with_notes(context.storage)
    matches = (_SWEEP.fullmatch(file.name) for file in context.storage.list(SWEEPS_FOLDER).files)
    swept_later = frozenset(match[1] for match in matches if match is not None)
    snapshot = load_for_writing(context)
    on_timeline: dict[str, bool] = {}
    for one in snapshot.timeline.active.instants:
        on_timeline[one.requested] = on_timeline.get(one.requested, True) and one.is_completed
    remains = _Leftovers(context, swept_later, on_timeline, heard_of(context, snapshot))
    cleared: set[str] = set()
    for instant in filter(_INSTANT.fullmatch, marked):
        if remains.has_ended(instant):
            delete_markers(context.storage, instant)
            cleared.add(instant)
    for entry in heartbeats:
        instant = entry.name.partition(".")[0]
        if _INSTANT.fullmatch(instant) and remains.has_ended(instant):
            context.storage.delete(entry.path)
            cleared.add(instant)
    for instant in with_notes:
        if on_timeline.get(instant, True):
            forget_notes(context.storage, instant)
            cleared.add(instant)
    for instant in with_ledger:
        if remains.may_be_forgotten(instant):
            _forget(context, instant)
            cleared.add(instant)
    return len(cleared)


def _forget(context: Context, instant: str) -> None:
    """Remove a ledger, its end last, so that a reader in between sees it ended."""
    entries = context.storage.list(f"{LEDGER_FOLDER}/{instant}").files
    for path in sorted(entry.path for entry in entries):
        context.storage.delete(path)


def _end_of(context: Context, instant: str) -> LedgerEnd:
    try:
        return read_ledger(context.storage, instant).ends_in
    except CorruptTable:
        return LedgerEnd.CLAIM


def _last(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]


# Drafts made while others may write. The one after them is made under the lock.
DRAFTS_MAX = 3

# How often the cleans after the writes of one process look for what others have left.
_TIDY_EVERY_MS = 600_000

_ONLY_PENDING = "The call runs pending cleans only."


@dataclass(frozen=True, slots=True)
class _Published:
    """A clean on the timeline with an attempt at it; neither when there is nothing to do."""

    draft: CleanDraft
    attempt: Attempt | None = None
    # The clean of another process that stands in the way.
    pending: str | None = None


def clean(
    context: Context,
    plan_request: CleanRequest | None = None,
    *,
    dry_run: bool = False,
    seen: Snapshot | None = None,
) -> Cleaned:
    """Remove what is too old to be read, or say why there is nothing and what holds it back.

    A dry run writes nothing, and tells what would go. Whether a clean is due is decided by the
    table as it was `seen`, if the caller has just looked.
    """
    plan_request = plan_request or CleanRequest()
    retention = retention_of(context.settings)
    snapshot = seen or load_for_writing(context)
    refuse_unmaintained(context.storage, snapshot.config)
    if dry_run:
        return retrying_view(
            partial(load_for_writing, context),
            lambda now: _dry_run(context, now, retention, plan_request),
        )
    if plan_request.honour_trigger and not snapshot.timeline.active.pending((Action.CLEAN,)):
        # After most writes it is too early, and that should cost them next to nothing.
        framed = _due(context, snapshot, retention, plan_request)
        if framed is not None:
            return _answer(context, snapshot, framed)
    context.memory.tidied_ms = context.now_ms()
    repair_savepoints(context)
    settled = recover_failed_instants(context, with_plans=True)
    swept = sweep(context)
    finished, held = finish_pending(context)
    prepared = Cleaned(
        finished=finished, settled=settled, swept=swept, remains_deleted=delete_leftovers(context)
    )
    if held is not None:
        return replace(prepared, why_nothing=held.why, held_by=held.instant)
    if plan_request.only_pending:
        return replace(prepared, why_nothing=_ONLY_PENDING)
    published = _publish(context, retention, plan_request)
    if published.attempt is None:
        return _nothing(context, published, prepared)
    with published.attempt as attempt:
        to_inflight(context, attempt)
        snapshot = load_for_writing(context)
        done = execute_attempt(context, snapshot, attempt)
    return _with_done(prepared, done, _answer(context, snapshot, published.draft))


def _due(
    context: Context, snapshot: Snapshot, retention: CleanRetention, plan_request: CleanRequest
) -> CleanDraft | None:
    """None if a clean is due; otherwise the draft that says why it is not.

    What others have left is put in order every few minutes, also where no file is too old.
    """
    framed = frame_clean(context, snapshot, retention, plan_request)
    tidied_ms = context.memory.tidied_ms
    if framed.is_over or tidied_ms is None or context.now_ms() - tidied_ms > _TIDY_EVERY_MS:
        return framed if framed.is_over else None
    drafted = draft_clean(context, snapshot, retention, plan_request)
    return drafted if drafted.is_empty else None


def _with_done(prepared: Cleaned, done: Finished, answer: Cleaned) -> Cleaned:
    """What was put in order, what the new clean has removed, and what its draft left."""
    return replace(
        prepared,
        instant=done.instant,
        completed=done.completed,
        files_deleted=done.files_deleted,
        bytes_deleted=done.bytes_deleted,
        partitions=done.partitions,
        partitions_deleted=done.partitions_deleted,
        earliest_retained=done.earliest_retained,
        milliseconds=done.milliseconds,
        kept=answer.kept,
        scope=answer.scope,
        held_by=answer.held_by,
    )


def _dry_run(
    context: Context, snapshot: Snapshot, retention: CleanRetention, plan_request: CleanRequest
) -> Cleaned:
    """What a clean would come to as things are: first the pending ones, then a new one."""
    pending = tuple(_dry_run_end(context, snapshot, one) for one in _pending_cleans(snapshot))
    if plan_request.only_pending:
        return Cleaned(finished=pending, why_nothing=_ONLY_PENDING, is_dry_run=True)
    drafted = draft_clean(context, snapshot, retention, plan_request)
    doomed = {path for one in _pending_cleans(snapshot) for path in _orders(snapshot, one).paths}
    left = tuple(file for file in drafted.files if file.path not in doomed)
    drafted = replace(drafted, selection=replace(drafted.selection, files=left))
    return replace(_answer(context, snapshot, drafted), finished=pending, is_dry_run=True)


def _pending_cleans(snapshot: Snapshot) -> tuple[Instant, ...]:
    """Those with a plan that is whole; others are removed by the next clean."""
    active = snapshot.timeline.active
    return tuple(one for one in active.pending((Action.CLEAN,)) if _is_planned(active, one))


def _is_planned(active: ActiveTimeline, instant: Instant) -> bool:
    files = active.files_of(instant)
    if files is None or files.requested is None:
        return False
    return is_whole_container(active.read(files.requested.instant))


def _orders(snapshot: Snapshot, instant: Instant) -> FilesToDelete:
    files = snapshot.timeline.active.files_of(instant)
    assert files is not None
    assert files.requested is not None
    path = files.requested.entry.path
    content = snapshot.timeline.active.read(files.requested.instant)
    return files_to_delete(clean_payload.decode_plan(content, path), path)


def _dry_run_end(context: Context, snapshot: Snapshot, instant: Instant) -> Finished:
    orders = _orders(snapshot, instant)
    there = [entry for entry in look_at_paths(context, orders.paths) if entry is not None]
    return Finished(
        instant=instant.requested,
        completed="",
        files_deleted=len(orders.paths),
        bytes_deleted=sum(entry.size_bytes for entry in there),
        partitions=tuple(sorted(orders.files)),
        partitions_deleted=orders.partitions,
    )


def _publish(context: Context, retention: CleanRetention, plan_request: CleanRequest) -> _Published:
    """Publish a clean that still holds.

    Steps of `clean`: draft, lock, reload, holds, publish, unlock. Where the draft does not hold any
    more there is another one. A crash before `clean.publish` leaves nothing, after it a clean that
    the next one carries out.
    """
    for tries in range(DRAFTS_MAX + 1):
        before, drafted = retrying_view(
            partial(load_for_writing, context),
            lambda seen: (seen, draft_clean(context, seen, retention, plan_request)),
        )
        if drafted.is_empty:
            return _Published(drafted)
        refuse_unheard(before.metadata)
        with context.lock.hold() as held:
            now = reload_under_lock(context)
            if tries == DRAFTS_MAX:
                drafted = draft_clean(context, now, retention, plan_request)
            elif not _still_holds(before, now):
                continue
            pending = now.timeline.active.pending((Action.CLEAN, Action.RESTORE))
            if pending or drafted.is_empty:
                return _Published(drafted, pending=pending[0].requested if pending else None)
            content = clean_payload.encode_plan(content_of(context.storage, drafted))
            done = publish_in(context, held, now, Action.CLEAN, content, claims=True)
            return _Published(drafted, done.attempt)
    raise AssertionError("The last draft is made under the lock.")


def _still_holds(before: Snapshot, now: Snapshot) -> bool:
    """Whether files that were not needed then are not needed now.

    New writes need no old file. But a savepoint or a plan may name one, and without an instant that
    was rolled back meanwhile the slice before it is the newest again.
    """
    known, there = before.timeline.active, now.timeline.active
    is_complete = {one.key for one in known.completed()} <= {one.key for one in there.completed()}
    plans = {one.key for one in there.pending()} - {one.key for one in known.pending()}
    return is_complete and known.savepoints() == there.savepoints() and not plans


def _nothing(context: Context, published: _Published, prepared: Cleaned) -> Cleaned:
    if published.pending is not None:
        why = f"{published.pending} has started in the meantime and has not ended."
        return replace(prepared, why_nothing=why, held_by=published.pending)
    answer = _answer(context, load_for_writing(context), published.draft)
    return replace(
        prepared,
        earliest_retained=answer.earliest_retained,
        kept=answer.kept,
        scope=answer.scope,
        why_nothing=answer.why_nothing,
        held_by=answer.held_by,
    )


def _answer(context: Context, snapshot: Snapshot, draft: CleanDraft) -> Cleaned:
    """What a draft means to the caller."""
    holder = draft.horizon.held_by
    if holder is None:
        named = [one.held_by for one in draft.kept if one.hold is not FileHold.RETAINED]
        held_by = min(named, default=None)
    else:
        held_by = holder.requested
    why = None
    if draft.is_empty:
        why = _why_nothing(context, snapshot, draft)
    return Cleaned(
        files_deleted=len(draft.files),
        bytes_deleted=sum(file.size_bytes for file in draft.files),
        partitions=tuple(sorted({file.partition for file in draft.files})),
        partitions_deleted=draft.selection.partitions,
        earliest_retained=draft.earliest,
        kept=draft.kept,
        scope=draft.scope,
        why_nothing=why,
        held_by=held_by,
    )


def _why_nothing(context: Context, snapshot: Snapshot, draft: CleanDraft) -> str:
    """Why nothing is cleaned, and what to do about what holds it back."""
    held_by = draft.horizon.held_by
    if held_by is not None:
        return f"{draft.horizon.why} {describe_pending(context, snapshot, held_by)}"
    if draft.horizon.instant is None and not draft.scope:
        return draft.horizon.why
    holders = sorted(
        {(one.hold.value, one.held_by) for one in draft.kept if one.hold is not FileHold.RETAINED}
    )
    if holders:
        named = ", ".join(f"{hold.replace('_', ' ')} {instant}" for hold, instant in holders)
        return f"All older files are needed by {named}."
    if draft.is_over:
        return draft.scope
    return f"No file is older than the retained commits. {draft.scope}".strip()
