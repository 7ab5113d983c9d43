"""Rolling forward: publishing the completed instant that a ledger says has been committed.

Done by the attempt itself after its commit, and by anyone who finds the entry after a crash; doing
it again changes nothing. The caller holds the table lock and has loaded the timeline under it.
"""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable, Unsettled
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.timeline.instants.instant import (
    Instant,
    Layout,
    State,
    StateFile,
    create_instant,
)
from lakewarden.engine.timeline.ledger.ledger import Ledger, assert_may_publish
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class RolledForward:
    """The completed instant, and whether the timeline given did not have it yet."""

    instant: Instant
    is_new: bool


def roll_forward(storage: Storage, timeline: Timeline, ledger: Ledger) -> RolledForward:
    """Publish what a ledger has committed, unless it is published already.

    Steps `commit.publish` and `reload.roll-forward`. Java may have completed the same plan under
    another completion time after a crash; a second completed file beside that one must not come
    into being.
    """
    entry = assert_may_publish(ledger)
    action = entry.action.completed_as
    instant = Instant(entry.instant, action, State.COMPLETED, entry.completion_time)
    published = _published(timeline, instant)
    if published is None:
        _publish(storage, timeline.active.layout, instant, entry.content)
        return RolledForward(instant, is_new=True)
    if isinstance(published, StateFile):
        if published.instant == instant:
            _mend(storage, published.entry.path, entry.content)
        return RolledForward(published.instant, is_new=False)
    return RolledForward(published, is_new=False)


def _published(timeline: Timeline, instant: Instant) -> StateFile | Instant | None:
    """The completed file, or the archived instant; None while it is pending."""
    files = timeline.active.files_of(instant)
    if files is not None:
        return files.completed
    for archived in timeline.archive.instants(instant.requested, instant.requested):
        if archived.key == instant.key:
            return archived
    raise CorruptTable(
        "committed_instant_vanished",
        what=f"{instant} is committed, but the timeline does not have it.",
        why="A writer without a ledger rolled it back between its commit and its publication.",
        now="Check for its files. If they are gone, delete its ledger and write again.",
        instant=instant.requested,
    )


def _publish(storage: Storage, layout: Layout, instant: Instant, content: bytes) -> None:
    match create_instant(storage, layout, instant, content):
        case Won():
            return
        case Lost():
            raise _contradiction(layout.path(instant))
        case Unknown(cause):
            raise Unsettled(
                "publishing_unsettled",
                what=f"It is not known whether {instant} was published.",
                why=cause,
                now="It is committed in any case: the next operation publishes it.",
                instant=instant.requested,
            )


def _mend(storage: Storage, path: str, content: bytes) -> None:
    """Make a completed file whole if it was torn while it was published."""
    there = storage.read(path)
    if len(there) >= len(content):
        return
    if not content.startswith(there):
        raise _contradiction(path)
    storage.put(path, content)


def _contradiction(path: str) -> CorruptTable:
    return CorruptTable(
        "contradicting_completion",
        what=f"{path} differs from what the ledger of its instant committed.",
        why="Another process wrote the file.",
        now="Compare it with the ledger's last entry, and keep the one that matches the files.",
        path=path,
    )
