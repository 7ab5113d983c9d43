"""Listing 10,000 partitions from the metadata table."""

from bench.measure import OURS, Measure, clocked, in_turns, within
from bench.partitioned import PARTITIONS, partitioned_table
from lakewarden.table import Table

STORAGE = "the same by listing the storage"


def run() -> list[Measure]:
    """All file slices, as the metadata table and as the storage lists them."""
    folder = str(partitioned_table())
    assert _names(folder, use_metadata=True) == _names(folder, use_metadata=False)
    rounds = in_turns(
        {
            OURS: clocked(lambda: _list(folder, use_metadata=True)),
            STORAGE: clocked(lambda: _list(folder, use_metadata=False)),
        },
        rounds=9,
    )
    return [
        within(
            f"all file slices of {PARTITIONS:,} partitions",
            rounds,
            at_most_ms=500,
            includes="`Table(path).file_slices()`: opening, both timelines, an HFile and nine logs "
            "of the `files` partition, and the slices of every partition",
        ),
        within(
            STORAGE,
            rounds,
            at_most_ms=None,
            includes=f"{PARTITIONS:,} folders on the local disk, which object stores are far from",
            ours=STORAGE,
        ),
    ]


def _list(folder: str, *, use_metadata: bool) -> None:
    assert len(Table(folder).file_slices(use_metadata=use_metadata)) == PARTITIONS


def _names(folder: str, *, use_metadata: bool) -> list[str]:
    slices = Table(folder).file_slices(use_metadata=use_metadata)
    files = [(slice_, file) for slice_ in slices for file in (slice_.base_file, *slice_.log_files)]
    return sorted(slice_.path(file) for slice_, file in files if file is not None)
