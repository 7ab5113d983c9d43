"""File groups and slices of every golden table are those of Java's file-system view."""

from typing import Any

import pytest

from lakewarden.engine.file_groups.file_names import CDC_SUFFIX
from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId, FileSlice
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable

Shape = tuple[str, str, str | None, tuple[str, ...]]


def shape(slice_: FileSlice) -> Shape:
    base = slice_.base_file.name if slice_.base_file else None
    logs = tuple(sorted(log.name for log in slice_.log_files))
    return slice_.file_id, slice_.base_instant, base, logs


def java_shape(slice_: dict[str, Any]) -> Shape:
    # Change logs lie beside the others but hold no rows of the slice.
    logs = tuple(sorted(log for log in slice_["log_files"] if not log.endswith(CDC_SUFFIX)))
    return slice_["file_id"], slice_["base_instant"], slice_["base_file"], logs


def finished(group: FileGroup) -> list[FileSlice]:
    """The slices that Java lists: those on top of a pending compaction are not among them."""
    return [slice_ for slice_ in group.slices if not slice_.is_pending]


@pytest.mark.parametrize("use_metadata", [True, False], ids=["metadata", "listing"])
@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_file_slices(
    name: str, use_metadata: bool, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    view = golden_document(name)["fsview"]
    state = load_snapshot(open_storage(Location(str(golden(name)))))
    groups = state.file_groups(state.visibility(), None, use_metadata=use_metadata)
    found = {(group.key.partition, group.key.file_id): group for group in groups}
    expected = {
        (partition, file_id): [java_shape(slice_) for slice_ in slices]
        for partition, content in view["partitions"].items()
        for file_id, slices in content["file_groups"].items()
    }
    assert {
        key: sorted(shape(slice_) for slice_ in finished(group)) for key, group in found.items()
    } == {key: sorted(slices) for key, slices in expected.items()}


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_replaced_file_groups(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    state = load_snapshot(open_storage(Location(str(golden(name)))))
    expected = {
        FileGroupId(partition, file_id)
        for partition, content in golden_document(name)["fsview"]["partitions"].items()
        for file_id in content["replaced"]
    }
    # Java lists a replaced group as long as its files are there.
    assert expected <= set(state.visibility().replaced)
