"""Do the indexes say what is true: keys in their places, and bounds that leave no value out?"""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.reading.column_stats import ColumnRange, column_ranges
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, RECORD_INDEX
from lakewarden.engine.services.indexing.present import FileReader, PresentTable
from lakewarden.engine.services.inspection.validation.finding import (
    CheckedTable,
    Finding,
    failed,
    ok,
    skipped,
)

_Homes = dict[str, set[FileGroupId]]


def check_record_index(scene: CheckedTable) -> Iterator[Finding]:
    """Every key of the rows is in the index once, where its row is; and no other one is."""
    if not scene.state.config.has_metadata(RECORD_INDEX):
        yield skipped("The table has no record index.")
        return
    homes: _Homes = {}
    repeated: set[tuple[str, FileGroupId]] = set()
    for one in PresentTable(scene.state, scene.executor).located():
        for key in one.keys.to_pylist():
            known = homes.setdefault(key, set())
            if one.home in known:
                repeated.add((key, one.home))
            known.add(one.home)
    indexed: _Homes = {}
    for location in all_locations(scene.state.metadata.record_index()):
        indexed.setdefault(location.key, set()).add(location.file_group_id)
    found = list(_differences(homes, indexed))
    for key, home in sorted(repeated):
        found.append(failed("Its file group has it twice.", about=key, partition=home.partition))
    yield from found
    if not found:
        yield ok(f"{len(homes)} keys are where the index says.")


def _differences(homes: _Homes, indexed: _Homes) -> Iterator[Finding]:
    for key in sorted(homes.keys() | indexed.keys()):
        rows, entries = homes.get(key, set()), indexed.get(key, set())
        for home in sorted(rows - entries):
            partition = home.partition
            if entries:
                detail = f"It is in {home.file_id}; the index says {_names(entries)}."
            else:
                detail = f"It is in {home.file_id}; the index does not have it."
            yield failed(detail, about=key, partition=partition)
        if not rows:
            home = min(entries)
            detail = f"The index says {_names(entries)}; there is no such row."
            yield failed(detail, about=key, partition=home.partition)


def _names(homes: set[FileGroupId]) -> str:
    return ", ".join(f"{home.partition}/{home.file_id}".lstrip("/") for home in sorted(homes))


def check_column_stats(scene: CheckedTable) -> Iterator[Finding]:
    """The bounds and counts of each base file that a read sees, against the file's footer."""
    state = scene.state
    if not state.config.has_metadata(COLUMN_STATS):
        yield skipped("The table keeps no column statistics.")
        return
    columns = next(one.columns for one in state.definitions if one.partition == COLUMN_STATS)
    groups = state.file_groups(state.visibility(), None, use_metadata=True)
    slices = [slice_ for slice_ in (group.latest_merged() for group in groups) if slice_.base_file]
    partitions = sorted({slice_.partition for slice_ in slices})
    ranges = column_ranges(state.metadata.partition(COLUMN_STATS), columns, partitions)
    reader = FileReader(state.storage, columns)

    def faults(slice_: FileSlice) -> list[Finding]:
        assert slice_.base_file is not None
        summaries = reader.summaries(slice_.path(slice_.base_file), slice_.base_file)
        known = ranges.get(slice_.partition, {}).get(slice_.base_file.name, {})
        return list(_of_file(slice_, summaries, known))

    found = [one for some in scene.executor.map(faults, slices) for one in some]
    yield from found
    if not found:
        yield ok(f"The statistics of {len(slices)} base files leave no value out.")


def _of_file(
    slice_: FileSlice,
    summaries: Mapping[str, ColumnSummary],
    known: Mapping[str, ColumnRange],
) -> Iterator[Finding]:
    """A file without any statistics is read by everybody, so that is no fault."""
    assert slice_.base_file is not None
    if not known:
        return
    for column, summary in summaries.items():
        detail = _fault(column, summary, known.get(column))
        if detail is not None:
            yield failed(detail, about=slice_.base_file.name, partition=slice_.partition)


def _fault(column: str, actual: ColumnSummary, known: ColumnRange | None) -> str | None:
    if known is None:
        return f"{column} has no statistics, so readers assume null in every row."
    counts = (known.null_count, known.value_count)
    if counts != (actual.null_count, actual.value_count):
        return f"{column} has {actual.null_count} nulls in {actual.value_count}, not {counts[0]}."
    if actual.minimum is None or actual.maximum is None or not actual.minimum.is_valid:
        return None
    bounds = known.bounds(actual.minimum.type)
    if bounds is None:
        return None
    low, high = (bound.as_py() for bound in bounds)
    least, most = actual.minimum.as_py(), actual.maximum.as_py()
    if low > least or (high < most and not _is_nan(actual.maximum)):
        return f"{column} lies between {least} and {most}, not {low} and {high}."
    return None


def _is_nan(value: pa.Scalar) -> bool:
    return bool(value.as_py() != value.as_py())
