"""Reading a merge-on-read table: 1.5 million rows in a file group, a tenth of them in its logs."""

from collections.abc import Sequence

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import services
from bench.measure import OURS, Measure, Rounds, clocked, faster, in_turns, near
from bench.orders import Groups, merge_on_read_orders
from bench.services import MeasuredService
from lakewarden.table import Table

ONE_GROUP = Groups(1, rows=1_500_000, updates=150_000, inserts=15_000, deletes=15_000)
ON_SPARK = "Lakewarden on Spark"
BASE = "pyarrow's read of the base file alone"
CHECKED_COLUMN = "qty"


def run() -> list[Measure]:
    """Everybody reads the same table, has the same rows, and then they take turns."""
    folder = merge_on_read_orders(ONE_GROUP)
    (base,) = folder.glob("*.parquet")
    table = str(folder)
    with services.rust_hudi() as rust, services.java_hudi() as java, services.spark() as spark:
        _check_same_rows(table, (rust, java, spark))
        rust_name, java_name = rust.ask("versions"), java.ask("versions")
        ours = clocked(lambda: Table(table).read_arrow())
        quick = in_turns(
            {
                OURS: ours,
                BASE: clocked(lambda: pq.ParquetFile(base).read()),
                rust_name: rust.clocked("read", table=table),
            },
            rounds=11,
        )
        slow = in_turns(
            {
                OURS: ours,
                ON_SPARK: spark.clocked("read", table=table),
                java_name: java.clocked("read", table=table),
            },
            warm_ups=2,
        )
    return [*_beside_quick(quick, rust_name), *_beside_java(slow, java_name)]


def _check_same_rows(table: str, readers: Sequence[MeasuredService]) -> None:
    rows = Table(table).read_arrow()
    ours = [len(rows), pc.sum(rows[CHECKED_COLUMN]).as_py()]
    assert ours[0] == ONE_GROUP.live_rows
    for reader in readers:
        theirs = reader.ask("checksum", table=table, column=CHECKED_COLUMN)
        assert theirs == ours, f"{theirs} where Lakewarden has {ours}"


def _beside_quick(rounds: Rounds, rust: str) -> list[Measure]:
    to_arrow = "from the path of the table to all columns as Arrow; "
    return [
        near(
            "a snapshot to Arrow, beside its base file",
            rounds,
            BASE,
            at_most=1.6,
            includes=to_arrow + "the peer only decodes the base file, with as many threads",
        ),
        near(
            "a snapshot to Arrow, beside Rust",
            rounds,
            rust,
            at_most=0.6,
            includes=to_arrow + "the peer's batches are taken over without a copy",
        ),
    ]


def _beside_java(rounds: Rounds, java: str) -> list[Measure]:
    return [
        faster(
            "a snapshot to Arrow, beside Java",
            rounds,
            java,
            at_least=8,
            includes="from the path of the table to all columns as Arrow; the peer ends with "
            "Spark's rows to nowhere, in a JVM that has read the table before",
        ),
        faster(
            "a snapshot on Spark to nowhere, beside Java",
            rounds,
            java,
            at_least=3,
            includes="from the path of the table to the last row of all columns, on Spark both, "
            "in JVMs that have read the table before",
            ours=ON_SPARK,
        ),
    ]
