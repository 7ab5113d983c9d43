"""Figures of files and of writes."""

from statistics import fmean, stdev

from lakewarden.engine.services.inspection.files.slice_view import Spread
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call, call_one

NAME = "mor_compaction_requested"


def test_sizes_of_all_files_come_first_then_those_of_each_write(golden: GoldenTable) -> None:
    path = golden(NAME)
    sizes = sorted(
        file.stat().st_size
        for file in path.rglob("*")
        if ".hoodie" not in file.parts and (".parquet" in file.name or ".log." in file.name)
    )
    every, *by_write = call("stats_file_sizes", path=str(path))
    assert (every["commit_time"], every["num_files"]) == ("ALL", len(sizes))
    assert (every["min"], every["max"]) == (sizes[0], sizes[-1])
    assert every["avg"] == fmean(sizes)
    assert every["std_dev"] == stdev(sizes)
    assert sum(row["num_files"] for row in by_write) == len(sizes)
    times = [row["commit_time"] for row in by_write]
    assert times == sorted(times, reverse=True)
    (one,) = call("stats_file_sizes", path=str(path), partition_path="p=a", limit=1)
    assert 0 < one["num_files"] < len(sizes)
    assert call("stats_file_sizes", path=str(path), partition_path="none") == []


def test_quantiles_lie_between_two_files() -> None:
    spread = Spread((10, 20, 30, 40))
    assert spread.quantile(0.5) == 25
    assert spread.quantile(0.1) == 10
    assert spread.quantile(0.95) == 40
    assert Spread((7,)).quantile(0.5) == 7
    assert Spread((7,)).deviation == 0


def test_amplification_is_written_by_updated(path: str) -> None:
    total, second, first = call("stats_wa", path=path)
    assert (first["total_upserted"], first["write_amplification_factor"]) == (0, "0")
    assert (second["total_upserted"], second["write_amplification_factor"]) == (6, "1.00")
    assert total == {
        "commit_time": "Total",
        "total_upserted": 6,
        "total_written": 12,
        "write_amplification_factor": "2.00",
    }
    assert call_one("stats_wa", path=path, filter="commit_time = 'Total'") == total
