"""Reading a copy-on-write table on Spark: 1.5 million rows in eight files."""

from bench import services
from bench.measure import OURS, Measure, in_turns, near
from bench.orders import Groups, copy_on_write_orders

EIGHT_FILES = Groups(8, rows=187_500)
SCAN = "spark.read.parquet"


def orders_in_files() -> tuple[str, list[str]]:
    """The table, and the files that are all of it."""
    folder = copy_on_write_orders(EIGHT_FILES)
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    assert len(files) == EIGHT_FILES.count
    return str(folder), files


def run() -> list[Measure]:
    """Our DataFrame beside Spark's own of the same files, in one session."""
    folder, files = orders_in_files()
    with services.spark() as spark:
        rows, _ = spark.ask("checksum", table=folder, column="qty")
        assert rows == EIGHT_FILES.live_rows
        rounds = in_turns(
            {
                OURS: spark.clocked("read", table=folder),
                SCAN: spark.clocked("read_files", files=files),
            },
            rounds=15,
            warm_ups=3,
        )
    return [
        near(
            "all rows and columns of 8 files, on Spark to nowhere",
            rounds,
            SCAN,
            at_most=1.15,
            includes="both begin with paths: ours with opening and planning the table, Spark's "
            "with looking at the files for their schema; both end with the last row read",
        )
    ]
