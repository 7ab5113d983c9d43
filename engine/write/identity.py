"""Recording identity: what a write has found out about a table, or says first, is kept for all.

Only properties change. After a crash before the write's commit the table says what its files tell,
or it has no rows.
"""

from lakewarden.engine.index.identity import identity_changed, record_of, recorded_identity
from lakewarden.engine.index.kinds import Identity, IndexChoice, KeyScope
from lakewarden.engine.index.settings import may_be_named
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import reload_under_lock


def record_identity(context: Context, state: Snapshot, selection: IndexChoice) -> None:
    """Record the index of a write, if nothing that says as much is recorded."""
    recorded = recorded_identity(state.config)
    if not _is_due(state, recorded, selection):
        return
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        now = snapshot
        if recorded_identity(snapshot.config) != recorded or (
            may_be_named(state) and not may_be_named(now)
        ):
            raise identity_changed("that was about to start")
        held.assert_held()
        update_properties(context.storage, record_of(selection, is_named=True))


def _is_due(state: Snapshot, recorded: Identity | None, selection: IndexChoice) -> bool:
    """Whether buckets were found from files, or a table without rows gets another identity."""
    if recorded is None:
        return selection.buckets is not None or (
            may_be_named(state) and selection.identity != Identity(KeyScope.PARTITION)
        )
    is_partitioned = state.config.is_partitioned
    return not selection.identity.equals_in_effect(recorded, is_partitioned=is_partitioned)
