"""Moving instants into the archive: first all of them are there, then they leave the timeline.

Readers take the union of both, and what is in both counts once, as active. The caller has the table
lock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.kernel.errors import Defect
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.active import ActiveTimeline, StateFile
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.writer import archive as archive_instants
from lakewarden.engine.timeline.archived_forms import archived_form
from lakewarden.engine.timeline.instants.instant import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move has come to."""

    files_deleted: int
    # Instants that an earlier archival, which was cut short, had written already.
    found_archived: int


def move(
    storage: Storage,
    active: ActiveTimeline,
    instants: Sequence[Instant],
    *,
    threads: int,
    forget: Callable[[Instant], None] | None = None,
    assert_held: Callable[[], None] | None = None,
) -> Moved:
    """Move completed instants out of the active timeline.

    Steps of `archive-move`: archive, verify, forget, pending, completed. A crash before
    `archive-move.verify` leaves them active, after it in both places. A completed file goes last,
    so that no process takes its instant for pending again. The oldest goes first, so that there is
    no hole. A process that has lost the lock stops before `archive-move.archive` and before
    `archive-move.forget`: another archival may have written a manifest without these instants.
    """
    _assert(assert_held)
    files = [active.files_of(instant) for instant in instants]
    folder = active.layout.history_folder
    known = _archived(storage, folder, instants)
    fresh = [instant for instant in instants if instant.key not in known]
    with_threads = LocalExecutor(threads)
    if fresh:
        archive_instants(
            storage, folder, list(with_threads.map(partial(archived_form, active), fresh))
        )
        _verify(instants, _archived(storage, folder, instants))
    _assert(assert_held)
    for instant in instants:
        if forget is not None:
            forget(instant)
    states = [state for group in files if group is not None for state in group]
    pending = [state.entry.path for state in states if not state.instant.is_completed]
    deleted = sum(with_threads.map(storage.delete, pending))
    deleted += sum(storage.delete(state.entry.path) for state in states if _is_last(state))
    return Moved(files_deleted=deleted, found_archived=len(instants) - len(fresh))


def _assert(assert_held: Callable[[], None] | None) -> None:
    if assert_held is not None:
        assert_held()


def _is_last(state: StateFile) -> bool:
    return state.instant.is_completed


def _archived(
    storage: Storage, folder: str, instants: Sequence[Instant]
) -> frozenset[tuple[str, str]]:
    """Those of some instants that the archive has."""
    times = [instant.requested for instant in instants]
    found = LsmArchive(storage, folder).instants(min(times), max(times))
    return frozenset(instant.key for instant in found)


def _verify(instants: Sequence[Instant], archived: frozenset[tuple[str, str]]) -> None:
    lost = [instant for instant in instants if instant.key not in archived]
    if lost:
        raise Defect(
            "not_archived",
            what=f"The archive lacks {lost[0]}, which was just written there.",
            why="Nothing was removed from the active timeline.",
            instant=lost[0].requested,
        )
