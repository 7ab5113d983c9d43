"""SELECT from a table by its name: 1.5 million rows in eight files."""

from bench import services
from bench.copy_on_write import SCAN, orders_in_files
from bench.measure import OURS, Measure, in_turns, near

SOURCE = "the data source in Python"


def run() -> list[Measure]:
    """A SELECT beside Spark's own scan of the same files, and the way that was not taken."""
    folder, files = orders_in_files()
    with services.spark() as spark:
        contestants = {
            OURS: spark.clocked("select", table=folder),
            SCAN: spark.clocked("read_files", files=files),
        }
        rounds = in_turns(contestants, rounds=11, warm_ups=3)
        both = {
            OURS: contestants[OURS],
            SOURCE: spark.clocked("read_source", table=folder),
        }
        beside = in_turns(both, rounds=3)
    return [
        near(
            "SELECT * of 8 files, to nowhere",
            rounds,
            SCAN,
            at_most=1.2,
            includes="ours begins with the text of the statement, Spark's with the paths of the "
            "files; both end with the last row read",
        ),
        near(
            "the same beside a data source in Python",
            beside,
            SOURCE,
            at_most=1,
            includes="what reads the table is the engine in both; the source hands rows over in "
            "Arrow batches",
        ),
    ]
