"""Recording identity: what a write has found out about a table, or says first, is kept for all.

Only properties change. After a crash before the write's commit the table says what its files tell,
or it has no rows.
"""

from lakewarden.engine.index.identity import identity_changed, record_of, recorded_identity
from lakewarden.engine.index.kinds import Identity, IndexChoice, Scope
from lakewarden.engine.index.settings import may_be_named
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import reload
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.properties_file import update_properties


def record_identity(context: Context, state: Snapshot, choice: IndexChoice) -> None:
    """Record the index of a write, if nothing that says as much is recorded."""
    recorded = recorded_identity(state.config)
    if not _is_due(state, recorded, choice):
        return
    with context.lock.hold() as held:
        moment = reload(context)
        now = moment
        if recorded_identity(moment.config) != recorded or (
            may_be_named(state) and not may_be_named(now)
        ):
            raise identity_changed("that was about to start")
        held.assert_held()
        update_properties(context.storage, record_of(choice, is_named=True))


def _is_due(state: Snapshot, recorded: Identity | None, choice: IndexChoice) -> bool:
    """Whether buckets were told from files, or a table without rows gets another identity."""
    if recorded is None:
        return choice.buckets is not None or (
            may_be_named(state) and choice.identity != Identity(Scope.PARTITION)
        )
    is_partitioned = state.config.is_partitioned
    return not choice.identity.equals_in_effect(recorded, is_partitioned=is_partitioned)
