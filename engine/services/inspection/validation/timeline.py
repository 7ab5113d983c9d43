"""Is the timeline sound: names, order, and contents that can be read."""

from collections.abc import Callable, Iterator, Mapping

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    indexing,
    replace,
    restore,
    rollback,
)
from lakewarden.engine.formats.instant_metadata import savepoint as savepoint_payload
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.inspection.validation.finding import (
    CheckedTable,
    Finding,
    failed,
    ok,
)
from lakewarden.engine.timeline.instants.instant import Action, Instant

_DECODERS: Mapping[Action, Callable[[bytes, str], object]] = {
    Action.COMMIT: commit.decode,
    Action.DELTA_COMMIT: commit.decode,
    Action.REPLACE_COMMIT: replace.decode,
    Action.CLEAN: clean.decode,
    Action.ROLLBACK: rollback.decode,
    Action.RESTORE: restore.decode,
    Action.SAVEPOINT: savepoint_payload.decode,
    Action.INDEXING: indexing.decode,
}
# Before it, the timeline shared its folder, and modification times stood for completion times.
_LAYOUT_OF_ITS_OWN = 2


def check_timeline(scene: CheckedTable) -> Iterator[Finding]:
    """Names, ordering, and the contents of what is completed."""
    active = scene.state.timeline.active
    found = list(_strangers(scene)) + list(_out_of_order(scene))
    completed = [instant for instant in active.instants if instant.is_completed]
    found += [one for one in scene.executor.map(lambda i: _unreadable(scene, i), completed) if one]
    yield from found
    if not found:
        yield ok(f"{len(active.instants)} instants, {len(completed)} of them completed.")


def _strangers(scene: CheckedTable) -> Iterator[Finding]:
    """Files in the timeline's folder that are no instants."""
    layout = scene.state.timeline.active.layout
    if layout.version < _LAYOUT_OF_ITS_OWN:
        return
    for entry in scene.state.storage.list(layout.folder).files:
        if layout.parse(entry) is None and not entry.name.startswith("."):
            yield failed("It is not the name of an instant.", about=entry.name)


def _out_of_order(scene: CheckedTable) -> Iterator[Finding]:
    active = scene.state.timeline.active
    if active.layout.version < _LAYOUT_OF_ITS_OWN:
        return
    for instant in active.instants:
        if instant.completed is not None and instant.completed < instant.requested:
            detail = f"It completed at {instant.completed}, before it started."
            yield failed(detail, about=str(instant))


def _unreadable(scene: CheckedTable, instant: Instant) -> Finding | None:
    decode = _DECODERS.get(instant.action)
    if decode is None:
        return None
    active = scene.state.timeline.active
    path = active.path(instant)
    try:
        # As it lies there: the timeline itself would give what the ledger says in its place.
        payload = scene.state.storage.read(path)
        decode(payload, path)
    except LakewardenError as error:
        return failed(str(error), about=str(instant))
    if active.layout.version == _LAYOUT_OF_ITS_OWN and not is_whole_container(payload):
        return failed(
            "Its completed file is truncated; the next write repairs it.", about=str(instant)
        )
    return None
