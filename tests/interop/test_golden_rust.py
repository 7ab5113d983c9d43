"""Golden tables: what we read equals what the Rust implementation reads, where it can."""

from pathlib import Path

import pytest

from lakewarden import Table
from tests.canonical import Row, canonical_rows, difference
from tests.golden_tables import GOLDEN_TABLES, SHARED_TABLES, GoldenTable
from tests.interop.differences import RUST_CANNOT_READ, RUST_READS_DIFFERENTLY
from tests.interop.judges import RustReader
from tests.interop.lines import Refused

LIMITS = RUST_CANNOT_READ | RUST_READS_DIFFERENTLY


def ours(table: Path) -> list[Row]:
    return canonical_rows(Table(str(table)).read_arrow())


@pytest.mark.parametrize(
    "name", [name for name in (*GOLDEN_TABLES, *SHARED_TABLES) if name not in LIMITS]
)
def test_snapshot(name: str, rust: RustReader, golden: GoldenTable) -> None:
    assert not difference(rust.read(golden(name)), ours(golden(name)))


@pytest.mark.parametrize("name", sorted(RUST_CANNOT_READ))
def test_what_rust_cannot_read_we_read(name: str, rust: RustReader, golden: GoldenTable) -> None:
    with pytest.raises(Refused):
        rust.read(golden(name))
    assert ours(golden(name))


@pytest.mark.parametrize("name", sorted(RUST_READS_DIFFERENTLY))
def test_rust_still_reads_differently(name: str, rust: RustReader, golden: GoldenTable) -> None:
    assert difference(rust.read(golden(name)), ours(golden(name)))
