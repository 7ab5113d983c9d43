"""Setting the index: the one call that changes by which index the writes of a table find keys.

An index that takes the same rows for one row may be set at any time, any index where there are no
rows. For keys over all partitions instead of within one, the rows are looked at first; buckets
would have to be made anew, which is not done here.
"""

from functools import partial

from lakewarden.engine.index.from_files import MIXED, identity_from_files
from lakewarden.engine.index.identity import described, kept_kind, record_of, recorded_identity
from lakewarden.engine.index.kinds import Identity, IndexChoice, IndexKind, KeyScope
from lakewarden.engine.index.options import INDEX_TYPE
from lakewarden.engine.index.settings import other_record_index, record_index_kind, wanted_identity
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.indexing.build import refuse_busy
from lakewarden.engine.services.indexing.index_views import IndexSet
from lakewarden.engine.services.indexing.present import PresentTable, repeated_key
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock


def set_index(context: Context, *, dry_run: bool = False) -> IndexSet:
    """Record the index that the settings name; what the rows don't allow is refused."""
    snapshot, selection = retrying_view(
        partial(load_for_writing, context), lambda seen: (seen, _checked(context, seen))
    )
    if dry_run:
        return _result(snapshot, selection, "would be")
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        refuse_busy(context, snapshot)
        selection = _checked(context, snapshot)
        held.assert_held()
        update_properties(context.storage, record_of(selection, is_named=True))
    return _result(snapshot, selection, "is")


def _checked(context: Context, snapshot: Snapshot) -> IndexChoice:
    """The index to record, if the rows of the table allow it."""
    settings, existing = context.settings, record_index_kind(snapshot)
    kind = settings[INDEX_TYPE]
    assert kind is not None
    if kind.is_record_index and existing not in (None, kind):
        raise other_record_index(kind, existing)
    identity = recorded_identity(snapshot.config) or _reported(snapshot, settings, existing)
    wanted, _ = wanted_identity(identity, settings, snapshot.config.key_fields)
    is_partitioned = snapshot.config.is_partitioned
    if is_partitioned and wanted.scope is KeyScope.PARTITION and _is_of_all_keys(existing):
        raise _untrue_index(kind)
    has_rows = bool(snapshot.timeline.active.completed())
    if has_rows and not wanted.equals_in_effect(identity, is_partitioned=is_partitioned):
        _refuse_other_rows(context, snapshot, identity, wanted)
    return IndexChoice(kind, buckets=wanted.buckets)


def _reported(state: Snapshot, settings: Settings, existing: IndexKind | None) -> Identity:
    """What the files tell; file groups that some take for buckets may be declared to be none."""
    try:
        return identity_from_files(state, settings, existing)
    except CorruptTable as error:
        if error.code != MIXED or settings[INDEX_TYPE] is IndexKind.BUCKET:
            raise
        return Identity(KeyScope.PARTITION)


def _is_of_all_keys(existing: IndexKind | None) -> bool:
    return existing is not None and existing.is_global


def _refuse_other_rows(
    context: Context, state: Snapshot, identity: Identity, wanted: Identity
) -> None:
    """Refuse what would take rows for one row that are two, or look for them where they aren't."""
    if identity.buckets != wanted.buckets:
        raise InvalidRequest(
            "index_needs_rewrite",
            what=f"The table cannot have {described(wanted)}.",
            why=(
                f"It has {described(identity)}, so writes would look for rows in the wrong place."
            ),
            now="Copy its rows into a new table, made with Table.create(index=...).",
        )
    if wanted.scope is KeyScope.TABLE:
        present = PresentTable(state, context.ports.executor)
        key = repeated_key(present.located(), is_partitioned=False)
        if key is not None:
            raise _several_rows(key)


def _several_rows(key: str) -> InvalidRequest:
    return InvalidRequest(
        "repeated_keys",
        what=f"The table has the record key {key!r} more than once.",
        why="With an index over all partitions a key identifies one row.",
        now="Remove the repeated rows, or keep an index within partitions.",
        key=key,
    )


def _untrue_index(kind: IndexKind) -> InvalidRequest:
    return InvalidRequest(
        "index_is_needed",
        what=f"The table cannot have the index {kind.value}.",
        why=(
            "Each partition could then have a row of one key, but the table's record index "
            "has one location per key."
        ),
        now="Drop the index record_index first, or build it with isPartitioned=true.",
        index_type=kind.value,
    )


def _result(snapshot: Snapshot, selection: IndexChoice, verb: str) -> IndexSet:
    record = record_of(selection, is_named=True)
    changed = {key for key, text in record.items() if snapshot.config.properties.get(key) != text}
    was = kept_kind(snapshot.config)
    return IndexSet(
        index=selection.kind.value,
        buckets_count=selection.buckets.count if selection.buckets else None,
        is_changed=bool(changed) and verb == "is",
        message=f"The index {verb} {selection.kind.value}"
        + (f"; it was {was.value}." if was not in (None, selection.kind) else "."),
    )
