"""Are the files there that readers are sent to, whole, and no others?

Is each key there once?

Do the ledgers tell the same as the timeline?

Is the timeline sound: names, order, and contents that can be read.
"""

from collections.abc import Callable, Iterator, Mapping

import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile
from lakewarden.engine.file_groups.listing import (
    LostFile,
    RecordedSizes,
    StorageListing,
    lost_files,
)
from lakewarden.engine.file_groups.slices import load_visibility
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
from lakewarden.engine.index.repeated_keys import KeySearch, RepeatedKeys, key_copies
from lakewarden.engine.index.settings import has_global_index
from lakewarden.engine.index.slice_keys import key_columns
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.reading.table import FILES, load_metadata_table
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.services.inspection.metadata_table import compare_files
from lakewarden.engine.services.inspection.validation.finding import (
    CheckedTable,
    Finding,
    failed,
    ok,
    skipped,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import kept_settings
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Withdrawn
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.transaction.state.rollback_plans import rollback_of

_Place = tuple[str, DataFile]


def check_files(scene: CheckedTable) -> Iterator[Finding]:
    """Every file of the newest view, and strays: files that no instant of the timeline has made."""
    state = scene.state
    seen = _newest(state)
    there = StorageListing(state.storage).files()
    sizes = {
        (partition, file.name): file.size_bytes
        for partition, files in there.items()
        for file in files
    }
    found = [
        one
        for one in scene.executor.map(lambda p: _find_lost_or_torn(state, sizes, *p), seen)
        if one
    ]
    reported = {(one.partition, one.object) for one in found}
    lost = (_as_finding(one) for one in lost_files(there, state.recorded, state.visibility()))
    found += [one for one in lost if (one.partition, one.object) not in reported]
    strays = list(_strays(state, there))
    yield from found
    yield from strays
    if not found and not strays:
        yield ok(f"{len(seen)} files of the newest slices, {len(sizes)} in all.")


def check_metadata_table(scene: CheckedTable) -> Iterator[Finding]:
    """The files that the metadata table lists, against a listing."""
    if not scene.state.config.has_metadata(FILES):
        yield skipped("The table has no metadata table.")
        return
    compared = list(compare_files(scene.state))
    wrong = [one for one in compared if not one.is_same]
    shortened = list(_shortened_logs(scene.state))
    yield from shortened
    for one in wrong:
        there, listed = _size(one.storage_bytes), _size(one.metadata_bytes)
        detail = f"On storage it {there}, in the metadata table it {listed}."
        yield failed(detail, about=one.name, partition=one.partition)
    if not wrong and not shortened:
        yield ok(f"{len(compared)} files are listed as they are.")


def _newest(state: Snapshot) -> list[_Place]:
    groups = state.file_groups(state.visibility(), None, use_metadata=True)
    found: list[_Place] = []
    for slice_ in (group.latest_merged() for group in groups):
        base: list[DataFile] = [slice_.base_file] if slice_.base_file else []
        found += [(slice_.partition, file) for file in (*base, *slice_.log_files)]
    return found


def _find_lost_or_torn(
    state: Snapshot, sizes: dict[tuple[str, str], int], partition: str, file: DataFile
) -> Finding | None:
    size = sizes.get((partition, file.name))
    if size is None:
        return failed("It is not on storage.", about=file.name, partition=partition)
    if size != file.size_bytes:
        detail = f"It has {size} bytes, and {file.size_bytes} are recorded."
        return failed(detail, about=file.name, partition=partition)
    if not isinstance(file, BaseFile) or file.extension != "parquet":
        return None
    path = f"{partition}/{file.name}" if partition else file.name
    try:
        with BaseReader(state.storage).opened(path) as source:
            pq.read_metadata(source)
    except CorruptTable as error:
        return failed(str(error), about=file.name, partition=partition)
    return None


def _strays(state: Snapshot, there: dict[str, tuple[DataFile, ...]]) -> Iterator[Finding]:
    """What is pending has files, too, and what is older than the active timeline has completed."""
    pending = {instant.requested for instant in state.timeline.active.pending()}
    for partition, files in there.items():
        for file in files:
            if file.instant not in pending and not state.timeline.is_completed(file.instant):
                detail = f"The timeline has no instant {file.instant}; a clean or sweep deletes it."
                yield failed(detail, about=file.name, partition=partition)


def _shortened_logs(state: Snapshot) -> Iterator[Finding]:
    """Files of the metadata table itself; one of a dropped partition may rightly be gone."""
    own = load_metadata_table(state.storage, state.config)
    there = {name: own.files(name) for name in state.config.metadata_partitions}
    active = own.timeline.active
    visibility = load_visibility(active, own.timeline, names_decide=state.config.version < 8)
    for one in lost_files(there, RecordedSizes(active), visibility):
        if one.found_bytes is not None:
            yield _as_finding(one)


def _as_finding(lost: LostFile) -> Finding:
    there = "is not on storage" if lost.found_bytes is None else f"has {lost.found_bytes} bytes"
    detail = f"It {there}; a completed write recorded {lost.recorded_bytes}."
    return failed(detail, about=lost.name, partition=lost.partition)


def _size(size_bytes: int | None) -> str:
    return "is not there" if size_bytes is None else f"has {size_bytes} bytes"


# So many keys are named; of the others it is said how many they are.
NAMED_MAX = 100


def check_keys(scene: CheckedTable) -> Iterator[Finding]:
    """Every key is there once: in its partition, or in the table if its index is over all."""
    state = scene.state
    if not key_columns(state.config).names:
        yield skipped("The table has no record keys.")
        return
    try:
        settings = Settings.of(table=kept_settings(state.config.properties))
        is_global = has_global_index(state, settings)
    except InvalidRequest as error:
        yield skipped(str(error))
        return
    named = left = 0
    for repeated in KeySearch(state, scene.executor, is_global).repeated():
        some = RepeatedKeys(repeated.keys.slice(0, max(NAMED_MAX - named, 0)), repeated.slices)
        named += len(some.keys)
        left += len(repeated.keys) - len(some.keys)
        yield from _reported(scene, some)
    if left:
        yield failed(f"{left} more keys repeat; repair_deduplicate lists all.", about="")
    if not named:
        yield ok("Every key appears once.")


def _reported(scene: CheckedTable, repeated: RepeatedKeys) -> Iterator[Finding]:
    if not len(repeated.keys):
        return
    copies = key_copies(scene.state, repeated, (), scene.executor)
    places: dict[str, list[tuple[str, str]]] = {}
    keys = repeated.keys.to_pylist()
    for key, at in zip(copies.key_at.tolist(), copies.slice_at.tolist(), strict=True):
        slice_ = copies.slices[at]
        places.setdefault(keys[key], []).append((slice_.partition, slice_.file_id))
    for key, homes in places.items():
        names = ", ".join(f"{partition}/{file_id}".lstrip("/") for partition, file_id in homes[:5])
        detail = f"It appears {len(homes)} times: {names}. repair_deduplicate keeps the newest."
        yield failed(detail, about=key, partition=homes[-1][0])


def check_ledgers(scene: CheckedTable) -> Iterator[Finding]:
    """Entries follow each other as they must, and instants have ended as their ledgers say."""
    instants = instants_with_ledger(scene.state.storage)
    if not instants:
        yield skipped("The table has no ledgers.")
        return
    found = [
        one for one in (_find_contradiction(scene.state, instant) for instant in instants) if one
    ]
    yield from found
    if not found:
        yield ok(f"{len(instants)} ledgers say what the timeline shows.")


def _find_contradiction(state: Snapshot, instant: str) -> Finding | None:
    try:
        detail = _contradiction(state, read_ledger(state.storage, instant))
    except CorruptTable as error:
        detail = str(error)
    return None if detail is None else failed(detail, about=instant)


def _contradiction(state: Snapshot, ledger: Ledger) -> str | None:
    """What a ledger denies and the timeline shows, or the other way round.

    A claim may be followed by anything: engines without ledgers execute plans as well. A rollback
    that died before it was published has withdrawn a write that is there as it was.
    """
    known = state.timeline.active.with_time(ledger.instant)
    match ledger.ends_in:
        case LedgerEnd.CANCELLED if not isinstance(ledger.last_whole, Withdrawn) and any(
            one.is_completed and one.action.is_write for one in known
        ):
            return "It ends in a cancellation, but the instant is complete."
        case LedgerEnd.COMMITTED if not known and not _has_its_end(state, ledger.instant):
            return "It ends in a commit, but the timeline does not have the instant."
    return None


def _has_its_end(state: Snapshot, instant: str) -> bool:
    """Whether a committed instant is archived, or was taken back by engines without ledgers."""
    timeline = state.timeline
    if timeline.is_completed(instant) or rollback_of(timeline, instant) is not None:
        return True
    return any(
        instant in restore.decode(timeline.active.read(one), one.requested).instants_to_rollback
        for one in timeline.active.completed((Action.RESTORE,))
        if one.requested > instant
    )


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
