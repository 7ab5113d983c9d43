"""The metadata table in a restore: what the instants have told it is taken out of it again.

Each of them has told it by a deltacommit of its own, with files of its own, so that without them it
is what it was. Where a compaction has folded them into base files, it is dropped and made anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.payloads import restore
from lakewarden.engine.formats.payloads.restore import RestoreMetadata, RestorePlan
from lakewarden.engine.formats.payloads.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
)
from lakewarden.engine.metadata.deltacommit import find_written, withdraw_deltacommit
from lakewarden.engine.metadata.instants import begin, complete
from lakewarden.engine.metadata.write_state import WriteState, load_write_state
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import Moment
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action

_FOLDS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})


@dataclass(frozen=True, slots=True)
class _Told:
    """One instant's deltacommit and the files it made."""

    instant: str
    rolled_back: str
    files: tuple[tuple[str, tuple[str, ...]], ...]


def can_forget(context: Context, moment: Moment, instants: Sequence[InstantFiles]) -> bool:
    """Whether the metadata table can be taken back to what it was before some instants."""
    state = load_write_state(context.storage, moment.config)
    firsts = []
    for files in instants:
        told = state.deltacommit(files.instant.requested)
        if told is not None and told.instant.completed is not None:
            firsts.append(told.instant.completed)
        elif told is None and files.completed is not None:
            # It was there before the metadata table, or its deltacommit is archived.
            return False
    first = min(firsts, default=None)
    return first is None or not any(_is_fold(files, first) for files in state.timeline.active.files)


def forget(
    context: Context, moment: Moment, target: str, instants: Sequence[InstantReference]
) -> None:
    """Take out what instants of the data table have told; under the lock, and safe to repeat.

    Steps: 1 a restore of its own begins, 2 the deltacommits go, newest first, 3 it completes. The
    instants are pending on the data table, so that readers pass over what is left of them.
    """
    state = load_write_state(context.storage, moment.config)
    moment.times.move_past(state.timeline.active.newest_time())
    there = [one for one in instants if state.deltacommit(one.commit_time) is not None]
    begun = state.timeline.active.pending((Action.RESTORE,))
    if not there and not begun:
        return
    own = begun[0].requested if begun else moment.times.next()
    references = tuple(
        InstantReference(commit_time=one.commit_time, action=Action.DELTA_COMMIT.value)
        for one in there
    )
    plan = RestorePlan(instants_to_rollback=references, savepoint_to_restore_timestamp=target)
    began_ms = context.now_ms()
    begin(state, own, Action.RESTORE, restore.encode_plan(plan))
    told = [_withdrawn(state, one, moment) for one in references]
    done = RestoreMetadata(
        start_restore_time=own,
        time_taken_in_millis=context.now_ms() - began_ms,
        instants_to_rollback=tuple(one.commit_time for one in references),
        hoodie_restore_metadata={one.instant: (_rollback_of(one),) for one in told},
        restore_instant_info=references,
    )
    complete(state, own, Action.RESTORE, restore.encode(done), moment.times)


def _withdrawn(state: WriteState, reference: InstantReference, moment: Moment) -> _Told:
    files = find_written(state, reference.commit_time)
    told = _Told(reference.commit_time, moment.times.next(), tuple(files.items()))
    withdraw_deltacommit(state, reference.commit_time)
    return told


def _rollback_of(told: _Told) -> RollbackMetadata:
    return RollbackMetadata(
        start_rollback_time=told.rolled_back,
        total_files_deleted=sum(len(names) for _, names in told.files),
        commits_rollback=(told.instant,),
        partition_metadata={
            partition: RollbackPartition(
                partition_path=partition,
                success_delete_files=tuple(f"{partition}/{name}" for name in names),
            )
            for partition, names in told.files
        },
        instants_rollback=(
            InstantReference(commit_time=told.instant, action=Action.DELTA_COMMIT.value),
        ),
    )


def _is_fold(files: InstantFiles, first: str) -> bool:
    """Whether it has put what was told since into base files, or is going to."""
    is_fold = files.begun_as in _FOLDS or files.instant.action is Action.COMMIT
    return is_fold and files.instant.requested > first
