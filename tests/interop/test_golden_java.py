"""Golden tables: what we read, and how we see timeline and files, equals what Java does."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import LakewardenError
from tests.canonical import Row, canonical_rows, difference
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable
from tests.interop.differences import JAVA_CANNOT_READ, JAVA_WINDOWS_NOT_ASKED
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused

Read = Callable[[], list[Row]]

READABLE = [name for name in GOLDEN_TABLES if name not in JAVA_CANNOT_READ]


def ours(table: Path, **how: Any) -> list[Row]:
    return canonical_rows(Table(str(table)).read_arrow(**how))


def agree(java_reads: Read, we_read: Read, *, refused: bool) -> None:
    """Both give the same rows; or both refuse, where it is documented that Java does."""
    if not refused:
        assert not difference(java_reads(), we_read())
        return
    with pytest.raises(Refused):
        java_reads()
    with pytest.raises(LakewardenError):
        we_read()


@pytest.mark.parametrize("use_metadata", [True, False], ids=["metadata", "listing"])
@pytest.mark.parametrize("name", READABLE)
def test_snapshot(name: str, use_metadata: bool, java: JavaJudge, golden: GoldenTable) -> None:
    expected = java.read(golden(name), metadata=use_metadata)
    assert not difference(expected, ours(golden(name), use_metadata=use_metadata))


@pytest.mark.parametrize("name", READABLE)
def test_read_optimized(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    expected = java.read(golden(name), read_optimized=True)
    assert not difference(expected, ours(golden(name), mode="read_optimized"))


@pytest.mark.parametrize("name", READABLE)
def test_as_of(
    name: str, java: JavaJudge, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    documented = golden_document(name)["expected"]["as_of"]
    agree(
        lambda: java.read(golden(name), as_of=documented["instant"]),
        lambda: ours(golden(name), as_of=documented["instant"]),
        refused="error" in documented,
    )


@pytest.mark.parametrize("name", [name for name in READABLE if name not in JAVA_WINDOWS_NOT_ASKED])
def test_changes(
    name: str, java: JavaJudge, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    table = Table(str(golden(name)))
    for documented in golden_document(name)["expected"]["incremental"]:
        begin, end = documented["begin"], documented["end"]
        agree(
            partial(java.read, golden(name), window=[begin, end]),
            lambda begin=begin, end=end: canonical_rows(table.changes_arrow(begin, end)),
            refused="error" in documented,
        )


@pytest.mark.parametrize("name", sorted(JAVA_CANNOT_READ))
def test_what_java_cannot_read_we_read(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    with pytest.raises(Refused):
        java.read(golden(name))
    assert ours(golden(name))


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_timeline(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    found = [
        {
            "requested": instant.requested,
            "action": instant.action.value,
            "state": instant.state.name,
            "completed": instant.completed,
        }
        for instant in Table(str(golden(name))).timeline().instants
    ]
    assert found == java.timeline(golden(name))["active"]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_file_slices(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in Table(str(golden(name))).file_slices():
        found.setdefault(one.partition, []).append(
            {
                "file_id": one.file_id,
                "base_instant": one.base_instant,
                "base_file": one.base_file.name if one.base_file else None,
                "log_files": [log.name for log in one.log_files],
            }
        )
    expected = {
        partition: slices["latest"]
        for partition, slices in java.file_slices(golden(name))["partitions"].items()
        if slices["latest"]
    }
    in_order = {
        partition: sorted(slices, key=lambda one: one["file_id"])
        for partition, slices in found.items()
    }
    assert in_order == expected
