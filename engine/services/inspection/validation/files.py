"""Are the files there that readers are sent to, whole, and no others?"""

from collections.abc import Iterator

import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.lost_files import LostFile, lost_files
from lakewarden.engine.file_groups.recorded_sizes import RecordedSizes
from lakewarden.engine.file_groups.visibility import load_visibility
from lakewarden.engine.kernel.errors import CorruptTable
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
    found = [one for one in scene.executor.map(lambda p: _fault(state, sizes, *p), seen) if one]
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


def _fault(
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
